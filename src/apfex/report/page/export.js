/* Files that the page hands out: tables as CSV, and the decision. Nothing leaves the machine. */

function saveFile(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/* What a cell says, without what is only drawn, or repeated for a narrow screen or paper. */
function textOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!(node instanceof HTMLElement)) return "";
  if (node.matches(".narrow-only, .print-only, .no-csv, [aria-hidden=true]")) return "";
  const parts = [...node.childNodes].map(textOf);
  return node.matches("br, div, li") ? `${parts.join("")} ` : parts.join("");
}
const NUMBER = /^[+−-]?[0-9][0-9,]*([.][0-9]+)?( pts|%)?$/;
/* A spreadsheet would run text that begins like a formula, also after what parts cells where
   numbers have a decimal comma: an apostrophe stops that. */
const FORMULA = /(^|[;|][ "]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
function safeCell(text) {
  const plain = text.replace(/\s+/g, " ").trim();
  if (NUMBER.test(plain)) return plain.replace("−", "-").replace(/,/g, "").replace(" pts", "");
  return `"${plain.replace(FORMULA, "$1'").replace(/"/g, '""')}"`;
}
function csvOf(head, rows) {
  const kept = head.map((one) => !one.classList.contains("narrow-cell") && !one.classList.contains("graph"));
  const isInterval = head.map((one) => one.textContent === "Interval");
  const line = (cells, split) =>
    cells
      .filter((_, place) => kept[place])
      .flatMap((one, place) => split(textOf(one), isInterval.filter((_, n) => kept[n])[place]))
      .map(safeCell)
      .join(",");
  const ofHead = (text, pair) => (pair ? ["Interval from", "Interval to"] : [text || "-"]);
  const ofRow = (text, pair) => {
    if (!pair) return [text];
    const ends = text.split(" to ");
    return ends.length === 2 ? ends : ["", ""];
  };
  const body = rows.flat(Infinity).map((row) => line([...row.cells], ofRow));
  return [line(head, ofHead), ...body].join("\r\n") + "\r\n";
}
function saveTable(caption, head, rows) {
  const name = caption.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80);
  saveFile(`${name || "table"}.csv`, `\ufeff${csvOf(head, rows)}`, "text/csv");
}
