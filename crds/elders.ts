import type { ObjectMeta } from './kind.ts'

/** Object whose identity is a value of its spec, so that two may have the same by mistake. */
interface Aged {
  readonly metadata: Pick<ObjectMeta, 'creationTimestamp' | 'uid'>
}

/**
 * Returns the objects that are in force, in their order: of two twins the older, and of two from the same second the one with the lesser uid.
 * A twin of an object that is not in force is in force. Pure.
 */
export function elders<Object extends Aged>(
  objects: readonly Object[],
  areTwins: (a: Object, b: Object) => boolean,
): readonly Object[] {
  const inForce = new Set<Object>()
  for (const object of objects.toSorted(byAge)) {
    if (![...inForce].some((elder) => areTwins(elder, object))) inForce.add(object)
  }
  return objects.filter((object) => inForce.has(object))
}

/** Returns the twin by which an object is not in force; undefined when it is in force. Pure. */
export function elderOf<Object extends Aged>(
  object: Object,
  objects: readonly Object[],
  areTwins: (a: Object, b: Object) => boolean,
): Object | undefined {
  const elder = elders(objects, areTwins).find((each) => areTwins(each, object))
  return elder?.metadata.uid === object.metadata.uid ? undefined : elder
}

const byAge = ({ metadata: a }: Aged, { metadata: b }: Aged): number =>
  Date.parse(a.creationTimestamp) - Date.parse(b.creationTimestamp) || (a.uid < b.uid ? -1 : 1)
