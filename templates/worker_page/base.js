// What all pages share; the widgets of this page and page.js come after it.
// Comments that fill a line and indentation are left out of the page.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const attempt = (action) => { try { return action(); } catch { return null; } };
const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const attribute = (element, name, value) => value ? element.setAttribute(name, value) : element.removeAttribute(name);
const task = JSON.parse(find("#task").textContent);
const texts = find("#texts").content;
// A text of the page with its values, {like} this.
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
const text = (name, values) => fill(find(`#${name}`, texts).textContent, values);
const isRtl = document.dir === "rtl";
const lengthOf = (value) => [...(value || "").trim()].length;

// Each kind of widget: `start` binds it to `set`, `show` displays the field's value, and
// `problem` says what is wrong with a value that is there.
const kinds = {};
// Which widget a question's kind has.
const widgetOf = (kind) => kinds[kind] || kinds.radio;
