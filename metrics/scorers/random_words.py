"""Common English words of unlike meaning, for the control by random words."""

_LINES = """
acorn actor airport alley ankle antenna apron arrow attic autumn axle badge bakery balcony
bamboo banjo barrel basket beaver bench bicycle blanket bolt bone border bottle branch brick
bridge broom bubble bucket buffalo button cabbage cable cactus camel candle canyon carpet
castle cement chalk chapel cherry chess chimney circle clay cliff clock cloud coal comet
copper coral cotton crane crater cricket curtain dagger dairy dentist desert diamond dice
dolphin donkey drawer drum eagle elbow elevator engine eraser falcon feather fence ferry
fiddle flannel flute fossil fountain fox frost furnace galaxy garlic gate ginger glacier glove
goat granite grape gravel guitar hammer harbor harvest hedge helmet heron hinge honey hook
horn ice ink iron island ivory jacket jar jelly jungle kettle kidney kite kitten ladder lake
lamp lantern lava lawn leather lemon lever lizard lobster lumber magnet mango map marble
market mask meadow melon mirror mist moss moth motor mountain mule museum mushroom nail
napkin needle nest nickel oak oar oasis olive onion orbit organ oven owl oyster paddle palace
panther parade parrot peach pebble pencil pepper piano pigeon pillow pine pirate planet plum
pocket pond porch potato prairie puddle pulley pumpkin pyramid quarry quartz quilt rabbit
radar raft railway rake raven ribbon rice river roof rope rudder saddle salmon sand saw scale
school shelf shoe silk skeleton sled snail soap spider spoon squirrel stable statue steam
stove straw sugar swamp sword tailor tank tent thread thumb thunder tiger tile tin toad
tomato tower tractor tray trumpet tulip tunnel turtle umbrella valley velvet village violin
volcano wagon walnut walrus watch wax whale wheat whistle willow window wolf wool yarn zebra
borrow climb count dig divide erase fold gather hang hurry knit lift measure paint plant
polish pour print rescue roll sail scrub shake sharpen sketch slide squeeze stack stretch
swim swing throw tie trace trade twist unlock vanish wander weave weigh whisper wrap
ancient bitter blunt brave brittle broad cheap clumsy crooked damp dense dusty eager faint
fierce flat fragile gentle hollow humid loud narrow odd pale rapid rough rusty shallow silent
sleepy slippery smooth sour steep striped sturdy tame tiny vast violet wooden yellow
"""
WORDS = tuple(_LINES.split())
