import { options } from 'preact'

/**
 * Characters without a shape of their own: controls (C0 without tab and line breaks, C1), zero-width spaces, and what changes the direction of the text
 * around it (Unicode Standard Annex #9, section 2). The zero-width joiner is not one of them, as emoji are made with it.
 */
const INVISIBLE = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g

/** Shows characters that a reader cannot see or that reorder other text: U+202E becomes `‹U+202E›`. */
export const visible = (text: string): string =>
  text.replaceAll(INVISIBLE, (char) => `‹U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`)

/** Attributes that a browser shows or reads out. */
const SHOWN = ['title', 'aria-label']

/** Makes every text that Preact renders visible, so that no page can forget it. Values of inputs and copied texts stay as they are. */
export function showInvisibleText(): void {
  options.vnode = makeVisible
}

function makeVisible(vnode: { readonly type: unknown; props: unknown }): void {
  // The props of a text node are its text.
  if (typeof vnode.props === 'string') vnode.props = visible(vnode.props)
  if (typeof vnode.type !== 'string') return
  const props = vnode.props as Record<string, unknown>
  for (const name of SHOWN) {
    const { [name]: text } = props
    if (typeof text === 'string') props[name] = visible(text)
  }
}
