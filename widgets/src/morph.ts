/**
 * Make one tree look like another and touch only what differs: focus, scroll positions and sections that a reader has opened stay
 * as they are, and nothing flickers.
 */

const KEPT = new Set(["open", "viewBox", "data-moved"]);

/** Replace the content of an element by markup. */
export function patch(element: Element, html: string): void {
  const template = document.createElement("template");
  template.innerHTML = html;
  children(element, template.content);
}

function children(from: Node, to: Node): void {
  const keyed = new Map<string, Element>();
  for (const child of Array.from(from.childNodes)) {
    const key = keyOf(child);
    if (key) keyed.set(key, child as Element);
  }
  let place = from.firstChild;
  for (const wanted of Array.from(to.childNodes)) {
    if (forbidden(wanted)) continue;
    const key = keyOf(wanted);
    const match = (key && keyed.get(key)) || (place && alike(place, wanted) && !keyOf(place) ? place : null);
    if (match && alike(match, wanted)) {
      if (match === place) place = place.nextSibling;
      else from.insertBefore(match, place);
      if (key) keyed.delete(key);
      node(match, wanted);
    } else {
      from.insertBefore(clean(wanted), place);
    }
  }
  while (place) {
    const next: ChildNode | null = place.nextSibling;
    from.removeChild(place);
    place = next;
  }
}

function node(from: Node, to: Node): void {
  if (!isElement(from) || !isElement(to)) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  for (const { name, value } of Array.from(to.attributes)) {
    if (!name.startsWith("on") && !KEPT.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of Array.from(from.attributes)) {
    if (!KEPT.has(name) && !to.hasAttribute(name)) from.removeAttribute(name);
  }
  const wanted = to.getAttribute("viewBox");
  if (wanted && !from.hasAttribute("data-moved")) from.setAttribute("viewBox", wanted);
  if (to.hasAttribute("data-since")) return; // the clock writes its text
  children(from, to);
}

function alike(one: Node, other: Node): boolean {
  return one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function keyOf(child: Node): string {
  return isElement(child) ? (child.getAttribute("data-key") ?? "") : "";
}

function isElement(child: Node): child is Element {
  return child.nodeType === 1;
}

function forbidden(child: Node): boolean {
  return child.nodeName.toLowerCase() === "script";
}

/** A copy without scripts and handlers: what is shown is data, whoever wrote it. */
function clean(child: Node): Node {
  const copy = child.cloneNode(true);
  if (isElement(copy)) {
    for (const script of Array.from(copy.querySelectorAll("script"))) script.remove();
    for (const part of [copy, ...Array.from(copy.querySelectorAll("*"))]) {
      for (const { name } of Array.from(part.attributes)) if (name.startsWith("on")) part.removeAttribute(name);
    }
  }
  return copy;
}
