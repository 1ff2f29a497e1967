// The Markdown that ptxvm writes, as elements: headings, lists, tables, code, bold words.
import { element } from "./dom.js";

function inline(text) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/);
  return parts.filter(Boolean).map((part) => {
    if (part.startsWith("`") && part.length > 1) return element("code", {}, part.slice(1, -1).replaceAll("\\|", "|"));
    if (part.startsWith("**") && part.length > 4) return element("strong", {}, part.slice(2, -2));
    return part;
  });
}

const cells = (line) => line.replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** The elements of a page. */
export function markdown(text) {
  const page = element("div", { class: "markdown" });
  const lines = text.split("\n");
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    if (line.startsWith("```")) {
      const end = lines.findIndex((one, at) => at > i && one.startsWith("```"));
      const stop = end < 0 ? lines.length : end;
      page.append(element("pre", {}, lines.slice(i + 1, stop).join("\n")));
      i = stop + 1;
    } else if (/^#{1,4} /.test(line)) {
      const level = line.indexOf(" ");
      page.append(element(`h${level + 1}`, {}, inline(line.slice(level + 1))));
      i += 1;
    } else if (line.startsWith("|")) {
      const rows = [];
      while (i < lines.length && lines[i].startsWith("|")) rows.push(cells(lines[i++]));
      const head = element("tr", {}, rows[0].map((cell) => element("th", {}, inline(cell))));
      const body = rows.slice(2).map((row) => element("tr", {}, row.map((cell) => element("td", {}, inline(cell)))));
      page.append(element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), element("tbody", {}, body))));
    } else if (line.startsWith("- ")) {
      const items = [];
      while (i < lines.length && lines[i].startsWith("- ")) items.push(element("li", {}, inline(lines[i++].slice(2))));
      page.append(element("ul", {}, items));
    } else if (line.trim() === "") {
      i += 1;
    } else {
      const words = [];
      while (i < lines.length && lines[i].trim() !== "" && !/^(#|\||- |```)/.test(lines[i])) words.push(lines[i++]);
      page.append(element("p", {}, inline(words.join(" "))));
    }
  }
  return page;
}
