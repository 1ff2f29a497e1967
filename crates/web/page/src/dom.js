/** An element with attributes and contents; `on…` are listeners. */
export function element(name, attributes = {}, ...contents) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...contents.flat(Infinity).filter((one) => one != null && one !== false));
  return node;
}

/** A choice of words. */
export function choice(label, options, chosen, changed) {
  const items = options.map((option) => {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    return element("option", { value, selected: value === chosen }, text);
  });
  return element("select", { "aria-label": label, onchange: (event) => changed(event.target.value) }, items);
}

/** A line of text. */
export function field(label, value, changed, attributes = {}) {
  return element("input", {
    "aria-label": label, value, spellcheck: "false", autocomplete: "off",
    oninput: (event) => changed(event.target.value), ...attributes,
  });
}
