import { randomBytes } from 'node:crypto'
import { openRepository } from '../../../backup/repository/open.ts'

/**
 * Program for the crash test. It writes to the repository of the URL `argv[2]` with 3 writers until it is killed: each has one key of its own,
 * which it replaces, and new keys. Objects begin with the number of their bytes that follow. It prints each key once it is written.
 */
const [, , url = '', prefix = ''] = process.argv
const repository = openRepository(url)

async function* body(): AsyncGenerator<Uint8Array> {
  const chunks = 1 + Math.floor(Math.random() * 200)
  yield Buffer.from(`${chunks * 65_536}\n`)
  for (let chunk = 0; chunk < chunks; chunk += 1) yield randomBytes(65_536)
}

async function write(key: string): Promise<void> {
  const { sha256 } = await repository.put(key, body())
  process.stdout.write(`${key} ${sha256}.\n`)
}

async function writeOn(writer: number): Promise<never> {
  for (let count = 0; ; count += 1) {
    await write(`${prefix}/${writer}/state.json`)
    await write(`${prefix}/${writer}/${count}.gz`)
  }
}
await Promise.all(Array.from({ length: 3 }, (_, writer) => writeOn(writer)))
