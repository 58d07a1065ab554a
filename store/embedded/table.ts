import type { Kind } from '../../crds/kind.ts'
import type { Key } from '../port.ts'
import { kindId, type Stored } from './object.ts'

/** Objects of one kind and namespace, ordered by name. */
type Shelf = Stored[]

/** Index of `name` on the shelf, or where it would have to go. */
function placeOf(shelf: Shelf, name: string): number {
  let low = 0
  let high = shelf.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((shelf[middle]?.metadata.name ?? '') < name) low = middle + 1
    else high = middle
  }
  return low
}

/** All objects of a store at one revision, by kind, namespace and name; kept in order, so that a list is a copy. */
export class Table {
  readonly #kinds: Map<string, Map<string, Shelf>>

  constructor(kinds = new Map<string, Map<string, Shelf>>()) {
    this.#kinds = kinds
  }

  get(kind: Kind, { namespace = '', name }: Key): Stored | undefined {
    const shelf = this.#kinds.get(kindId(kind))?.get(namespace)
    const found = shelf?.[placeOf(shelf, name)]
    return found?.metadata.name === name ? found : undefined
  }

  /** A new array of all objects of the kind (or those of one namespace), by namespace, then name. */
  list(kind: Kind, namespace?: string): Stored[] {
    const shelves = this.#kinds.get(kindId(kind))
    if (!shelves) return []
    if (namespace !== undefined) return shelves.get(namespace)?.slice() ?? []
    const names = [...shelves.keys()].sort((a, b) => (a < b ? -1 : 1))
    return names.flatMap((name) => shelves.get(name) ?? [])
  }

  /** Puts the object in the place of an older one of that name, if there is one. */
  put(kind: Kind, object: Stored): void {
    const { namespace = '', name } = object.metadata
    const shelf = this.#shelf(kindId(kind), namespace)
    const place = placeOf(shelf, name)
    shelf.splice(place, shelf[place]?.metadata.name === name ? 1 : 0, object)
  }

  remove(kind: Kind, { namespace = '', name }: Key): void {
    const shelves = this.#kinds.get(kindId(kind))
    const shelf = shelves?.get(namespace)
    if (!shelf) return
    const place = placeOf(shelf, name)
    if (shelf[place]?.metadata.name === name) shelf.splice(place, 1)
    if (shelf.length === 0) shelves?.delete(namespace)
  }

  /** A second table of the same objects. */
  clone(): Table {
    const copy = new Map<string, Map<string, Shelf>>()
    for (const [id, shelves] of this.#kinds) copy.set(id, new Map([...shelves].map(([name, shelf]) => [name, shelf.slice()])))
    return new Table(copy)
  }

  #shelf(id: string, namespace: string): Shelf {
    let shelves = this.#kinds.get(id)
    if (!shelves) this.#kinds.set(id, (shelves = new Map<string, Shelf>()))
    let shelf = shelves.get(namespace)
    if (!shelf) shelves.set(namespace, (shelf = []))
    return shelf
  }
}
