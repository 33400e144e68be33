// The table of clusters sorts, filters and turns its pages; the page loads itself again if it is asked to. What is chosen
// stands in the address behind the #, so that it is the same after a reload.
(() => {
  "use strict";
  const size = 100;
  const by = (id) => document.getElementById(id);
  const body = by("cluster-table").tBodies[0], heads = [...by("cluster-table").tHead.rows[0].cells];
  const controls = { q: by("q"), at: by("at"), mark: by("mark") };
  const collator = new Intl.Collator("en", { numeric: true });
  // A row is read when it is asked for first: thousands of them are there, and most are never looked at.
  const rows = [...body.rows].map((tr) => ({ tr }));
  const cell = (row, i) => (row.cells ??= [...row.tr.cells].map((c) => c.textContent))[i];
  const text = (row) => (row.text ??= [0, 1, 2].map((i) => cell(row, i)).join("\n").toLowerCase());
  const auto = by("auto");
  let column = 0, down = false, first = 0, found = rows, timer;

  const choose = () => {
    const q = controls.q.value.trim().toLowerCase(), at = controls.at.value, mark = controls.mark?.value ?? "";
    found = rows.filter((r) => (!q || text(r).includes(q)) && (!at || cell(r, 3) === at) && (!mark || cell(r, 6).includes(mark)));
    if (column === 0 && !down) return; // as they came
    const number = (r) => { const n = parseFloat(cell(r, column)); return Number.isNaN(n) ? -1 : n; };
    const compare = heads[column].dataset.as === "number" ? (a, b) => number(a) - number(b) : (a, b) => collator.compare(cell(a, column), cell(b, column));
    found = [...found].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
  };
  const show = () => {
    const page = found.slice(first, first + size);
    for (const r of page) r.tr.hidden = false;
    body.replaceChildren(...page.map((r) => r.tr));
    const n = (i) => i.toLocaleString("en");
    by("shown").textContent = found.length === 0 ? "No cluster is like that" : `${n(first + 1)} to ${n(first + page.length)} of ${n(found.length)}`;
    by("back").disabled = first === 0;
    by("next").disabled = first + size >= found.length;
  };
  const chosen = () => {
    const p = new URLSearchParams();
    for (const [k, c] of Object.entries(controls)) if (c?.value) p.set(k, c.value);
    if (column !== 0 || down) p.set("sort", `${column}${down ? "d" : ""}`);
    if (auto?.checked) p.set("auto", "1");
    return p;
  };
  const keep = () => {
    const p = chosen();
    history.replaceState(null, "", p.size ? `#${p}` : location.pathname + location.search);
  };
  const follow = () => { clearTimeout(timer); if (auto?.checked) timer = setTimeout(() => location.reload(), 30000); };
  const again = () => { first = 0; choose(); show(); keep(); };
  const sortBy = (i, falling) => {
    column = i; down = falling;
    heads.forEach((h, j) => (j === i ? h.setAttribute("aria-sort", falling ? "descending" : "ascending") : h.removeAttribute("aria-sort")));
  };

  const read = () => {
    const p = new URLSearchParams(location.hash.slice(1));
    for (const [k, c] of Object.entries(controls)) if (c) c.value = p.get(k) ?? "";
    const sorted = /^([0-6])(d?)$/.exec(p.get("sort") ?? "");
    sortBy(sorted ? Number(sorted[1]) : 0, sorted?.[2] === "d");
    if (auto) auto.checked = p.has("auto");
    first = 0; choose(); show(); follow();
  };

  heads.forEach((h, i) => h.firstElementChild.addEventListener("click", () => {
    sortBy(i, column === i ? !down : h.dataset.as === "number"); // the largest first
    again();
  }));
  controls.q.addEventListener("input", again);
  controls.at.addEventListener("change", again);
  controls.mark?.addEventListener("change", again);
  controls.q.form.addEventListener("submit", (e) => e.preventDefault());
  by("back").addEventListener("click", () => { first = Math.max(0, first - size); show(); });
  by("next").addEventListener("click", () => { first += size; show(); });

  auto?.addEventListener("change", () => { follow(); keep(); });
  by("again")?.addEventListener("click", (e) => { e.preventDefault(); location.reload(); });
  // A link within the page, such as to "What waits", has gone there, and what is chosen takes its place in the address.
  addEventListener("hashchange", () => (location.hash.includes("=") ? read() : chosen().size && keep()));
  read();
})();
