// All is there: the page around the frame may say what it knows.
root.remove("loading");
tell({ type: "assay:hello" });
