import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { smallDisk } from '../support/postgresql/disks.ts'
import { createEmbeddedStore, type EmbeddedStore } from '../../store/embedded.ts'
import { isStoreError } from '../../store/port.ts'

const namespace = 'test'
/** Base64 of random bytes, which cannot be compressed. */
const bulk = (): { blob: string } => ({ blob: randomBytes(30_000).toString('base64') })

/** Names of acknowledged objects. Every other write failed because the disk is full. */
class Ledger {
  readonly #names = new Set<string>()

  async create(store: EmbeddedStore, name: string): Promise<boolean> {
    const done = await acknowledged(store.create(Secret, { metadata: { namespace, name }, data: bulk() }))
    if (done) this.#names.add(name)
    return done
  }

  async delete(store: EmbeddedStore, name: string): Promise<void> {
    if (await acknowledged(store.delete(Secret, { namespace, name }))) this.#names.delete(name)
  }

  /** Creates objects, four at a time, until a write fails. */
  async fill(store: EmbeddedStore, prefix: string): Promise<void> {
    for (let round = 0, full = false; !full; round += 1) {
      const names = ['a', 'b', 'c', 'd'].map((letter) => `${prefix}-${round}-${letter}`)
      full = (await Promise.all(names.map((name) => this.create(store, name)))).includes(false)
    }
  }

  async expectIn(store: EmbeddedStore): Promise<void> {
    const { items } = await store.list(Secret)
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual([...this.#names].sort())
  }
}

async function acknowledged(write: Promise<unknown>): Promise<boolean> {
  try {
    await write
    return true
  } catch (error) {
    expect(isStoreError(error, 'unavailable')).toBe(true)
    return false
  }
}

test('a full disk fails only writes; with free space they work again, and no acknowledged write is lost', async () => {
  await using disk = await smallDisk(3)
  const path = join(disk.dir, 'state.db')
  const ledger = new Ledger()
  {
    await using store = await createEmbeddedStore({ path })
    await store.create(Namespace, { metadata: { name: namespace } })
    // Each round frees space for a whole write-ahead log, which the checkpoint uses first.
    for (const mebibytes of [12, 30, 40]) {
      await ledger.fill(store, `before${mebibytes}`)
      await ledger.expectIn(store)
      await ledger.delete(store, `before${mebibytes}-0-a`)
      await ledger.expectIn(store)
      await disk.grow(mebibytes)
      expect(await ledger.create(store, `room${mebibytes}`)).toBe(true)
      await ledger.expectIn(store)
    }
  }
  await using store = await createEmbeddedStore({ path })
  await ledger.expectIn(store)
})

test('a store on a full disk can be opened, read and closed, and written once space is free', async () => {
  await using disk = await smallDisk(8)
  const path = join(disk.dir, 'state.db')
  const ledger = new Ledger()
  {
    await using store = await createEmbeddedStore({ path })
    await store.create(Namespace, { metadata: { name: namespace } })
    for (const name of ['a', 'b', 'c']) await ledger.create(store, name)
  }
  const makeRoom = await disk.fill()
  {
    await using store = await createEmbeddedStore({ path })
    await ledger.expectIn(store)
    expect(await ledger.create(store, 'late')).toBe(false)
    await makeRoom()
    expect(await ledger.create(store, 'room')).toBe(true)
  }
  await using store = await createEmbeddedStore({ path })
  await ledger.expectIn(store)
})
