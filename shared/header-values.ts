import { z } from 'zod'
import {
  type HeaderModification,
  HeaderValue,
  type SecretKeyRef,
  type StoredHeaderModification,
  type TunnelConfig,
} from '../crds/tunnel-config.ts'

/** Header values of a tunnel that come from Secrets of its namespace, by {@link refText}. */
export type HeaderValues = ReadonlyMap<string, string>

/** Text of a reference: `web-headers/token`. Neither part has a slash. */
export const refText = ({ name, key }: SecretKeyRef): string => `${name}/${key}`

/** Returns the references to Secrets in the headers of a config. */
export function headerReferences({
  liveHeaderModifications: items,
}: Pick<TunnelConfig, 'liveHeaderModifications'>): readonly SecretKeyRef[] {
  return items.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])
}

/**
 * Returns the value of an item. Undefined: it comes from a Secret and is missing. A missing value must neither be replaced by a guess nor
 * leave the header as the sender had it, who could forge it.
 */
export function valueOf({ value, valueFrom }: StoredHeaderModification, values: HeaderValues): string | undefined {
  return valueFrom ? values.get(refText(valueFrom.secretKeyRef)) : (value ?? '')
}

/** Returns the items with literal values. An item whose value is missing removes its header. */
export function literalItems(items: readonly StoredHeaderModification[], values: HeaderValues): readonly HeaderModification[] {
  return items.map((item) => ({ name: item.name, value: valueOf(item, values) ?? '', type: item.type }))
}

/** Whether a value in a Secret can be sent as a header. */
export const isHeaderValue = (value: string): boolean => HeaderValue.safeParse(value).success

/** Returns the header value in a value of a Secret: without the line break that editors and `echo` leave at its end. */
export const withoutLineBreak = (value: string): string => value.replace(/\r?\n$/, '')

/** Entry of the copy of header values that edges read (`data` of the Secret of shared/edge-objects.ts). */
export const COPY_ENTRY = 'values'

const Copy = z.record(z.string().max(600), HeaderValue)

/** Text of the copy. Equal values are equal texts. */
export const copyText = (values: HeaderValues): string =>
  JSON.stringify(Object.fromEntries([...values].toSorted(([a], [b]) => (a < b ? -1 : 1))))

/** Parses the text of a copy; undefined for any other text. */
export function parseCopy(text: string): HeaderValues | undefined {
  try {
    return new Map(Object.entries(Copy.parse(JSON.parse(text))))
  } catch {
    return undefined
  }
}

/** Headers of a tunnel, and the values of their references. */
export interface KnownHeaders {
  readonly items: readonly StoredHeaderModification[]
  readonly values: HeaderValues
}

export interface NewHeaders {
  readonly items: readonly StoredHeaderModification[]
  /** Values to add to the Secret before the items are used, by key. */
  readonly added: Readonly<Record<string, string>>
}

/**
 * Replaces literal values by references to a Secret. An item with the value that it has already keeps its reference, so that a write that
 * changes nothing is none. Each other value gets a new key: a key never changes its value, so references and values need no common write.
 * @param secret Secret that gets the new values
 * @param draw returns random text for a key
 */
export function referringItems(
  items: readonly HeaderModification[],
  known: KnownHeaders,
  { secret, draw }: { readonly secret: string; readonly draw: () => string },
): NewHeaders {
  const added: Record<string, string> = {}
  const referring = items.map(({ name, value, type }): StoredHeaderModification => {
    // An empty value removes the header: it is no secret.
    if (value === '') return { name, value, type }
    const same = known.items.find(
      (each) => each.type === type && each.name.toLowerCase() === name.toLowerCase() && valueOf(each, known.values) === value,
    )
    if (same?.valueFrom) return { name, valueFrom: same.valueFrom, type }
    const key = `${name.toLowerCase().replaceAll(/[^-._a-z0-9]/g, '_')}-${draw()}`
    added[key] = value
    return { name, valueFrom: { secretKeyRef: { name: secret, key } }, type }
  })
  return { items: referring, added }
}
