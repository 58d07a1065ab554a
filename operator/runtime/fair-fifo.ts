/** Queue of items in groups: groups take turns, and each group is first in, first out. */
export interface FairFifo<T> {
  push(group: string, item: T): void
  /** Removes the first item of the group whose turn it is; undefined when the queue is empty. */
  shift(): T | undefined
  clear(): void
  readonly size: number
}

export function createFairFifo<T>(): FairFifo<T> {
  const groups = new Map<string, Fifo<T>>()
  const turns = createFifo<string>()
  let size = 0

  return {
    push(group, item) {
      let items = groups.get(group)
      if (!items) {
        items = createFifo()
        groups.set(group, items)
        turns.push(group)
      }
      items.push(item)
      size += 1
    },
    shift() {
      const group = turns.shift()
      if (group === undefined) return undefined
      const items = groups.get(group)
      const item = items?.shift()
      if (items?.size === 0) groups.delete(group)
      else turns.push(group)
      size -= 1
      return item
    },
    clear() {
      groups.clear()
      turns.clear()
      size = 0
    },
    get size() {
      return size
    },
  }
}

interface Fifo<T> {
  push(item: T): void
  shift(): T | undefined
  clear(): void
  readonly size: number
}

/** Array.shift moves all remaining items; here the front index advances, and the array is cut when half of it is consumed. */
function createFifo<T>(): Fifo<T> {
  let items: (T | undefined)[] = []
  let front = 0

  return {
    push(item) {
      items.push(item)
    },
    shift() {
      const item = items[front]
      if (front === items.length) return undefined
      items[front] = undefined
      front += 1
      if (front * 2 >= items.length) {
        items = items.slice(front)
        front = 0
      }
      return item
    },
    clear() {
      items = []
      front = 0
    },
    get size() {
      return items.length - front
    },
  }
}
