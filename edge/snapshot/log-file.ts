import { randomUUID } from 'node:crypto'
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'

interface Deps {
  readonly path: string
  /** First line: a file that begins otherwise is of somebody else, and is not read. */
  readonly title: string
  /** All that there is now. */
  readonly live: () => Iterable<readonly [id: string, value: unknown]>
  /** Between two writes. */
  readonly everyMs?: number
  /** After one that failed. */
  readonly againMs?: number
  readonly log: Pick<Logger, 'warn'>
}

/** Values by id that outlive the process: what they were a moment ago. */
export interface LogFile extends AsyncDisposable {
  /** As the process before left them; the caller's, to forget what it needs no more. */
  readonly found: Map<string, unknown>
  /** It is written within a tenth of a second, and so is `undefined`, which ends it. */
  set(id: string, value: unknown): void
  /** Writes what waits now. */
  flush(): Promise<void>
}

const EVERY_MS = 100
/** After a failure: each try writes all there is, and a full disk stays full for long. */
const AGAIN_MS = 10_000
/** Written beyond what is alive, before the file is made anew. */
const SLACK_BYTES = 1024 * 1024
/** Written at a time: turning it all into text in one go would hold up the visitors. */
const CHUNK_CHARACTERS = 256 * 1024

/**
 * Opens or makes such a file, mode 0600. Each line is an id and its value, the last one counts; it is made anew, beside the old one and then in
 * its place, when half of it is of the past. A line that was cut off is passed over, so it can be read after any end.
 */
export async function openLogFile(deps: Deps): Promise<LogFile> {
  const { path, title, live, everyMs = EVERY_MS, againMs = AGAIN_MS, log } = deps
  const found = await read(path, title)
  /** What waits to be written. */
  const changed = new Map<string, unknown>()
  let handle: FileHandle | undefined
  let [bytes, aliveBytes] = [0, 0]
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()
  let disposed = false
  let failed = false

  function set(id: string, value: unknown): void {
    if (disposed) return
    // What is set last is written last: a file that was cut off is then of an earlier moment, not of none.
    changed.delete(id)
    changed.set(id, value)
    timer ??= setTimeout(() => void flush(), everyMs).unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing = writing.then(write)
    return writing
  }

  async function write(): Promise<void> {
    if (changed.size === 0 && !failed) return
    try {
      if (handle === undefined || bytes > 2 * aliveBytes + SLACK_BYTES) await renew()
      else await append(handle)
      failed = false
    } catch (error) {
      log.warn({ err: error }, 'what is served could not be kept on disk')
      await handle?.close().catch((closing: unknown) => log.warn({ err: closing }, 'a file could not be closed'))
      // All of it is written anew the next time: how far it got this time is not known.
      handle = undefined
      failed = true
      // Not before that time, whatever changes meanwhile.
      clearTimeout(timer)
      timer = setTimeout(() => void flush(), againMs).unref()
    }
  }

  async function append(file: FileHandle): Promise<void> {
    const lines = [...changed].map(([id, value]) => lineOf(id, value))
    changed.clear()
    for (const text of chunks(lines)) bytes += (await file.write(text)).bytesWritten
  }

  async function renew(): Promise<void> {
    const temporary = join(dirname(path), `.${randomUUID()}.tmp`)
    // 'wx' does not follow a link that somebody else planted.
    const file = await open(temporary, 'wx', 0o600)
    try {
      changed.clear()
      let size = 0
      for (const text of chunks(all())) size += (await file.write(text)).bytesWritten
      await file.sync()
      await rename(temporary, path)
      await handle?.close()
      handle = file
      bytes = aliveBytes = size
    } catch (error) {
      await file.close()
      await rm(temporary, { force: true })
      throw error
    }
  }

  function* all(): Generator<string> {
    yield `${JSON.stringify(title)}\n`
    for (const [id, value] of live()) yield lineOf(id, value)
  }

  return {
    found,
    set,
    flush,
    async [Symbol.asyncDispose]() {
      disposed = true
      await flush()
      await handle?.close()
    },
  }
}

const lineOf = (id: string, value: unknown): string => `${JSON.stringify([id, value ?? null])}\n`

function* chunks(lines: Iterable<string>): Generator<string> {
  let text = ''
  for (const line of lines) {
    text += line
    if (text.length < CHUNK_CHARACTERS) continue
    yield text
    text = ''
  }
  if (text !== '') yield text
}

async function read(path: string, title: string): Promise<Map<string, unknown>> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return parseLog(text, title)
}

/** What a file of this title says; nothing, when it is no such file. Never throws. */
export function parseLog(text: string, title: string): Map<string, unknown> {
  const found = new Map<string, unknown>()
  const [head = '', ...lines] = text.split('\n')
  if (head !== JSON.stringify(title)) return found
  for (const line of lines) {
    const entry = entryOf(line)
    if (entry === undefined) continue
    const [id, value] = entry
    if (value === null) found.delete(id)
    else found.set(id, value)
  }
  return found
}

function entryOf(line: string): readonly [string, unknown] | undefined {
  try {
    const entry: unknown = JSON.parse(line)
    if (!Array.isArray(entry) || entry.length !== 2) return undefined
    const [id, value] = entry as readonly unknown[]
    return typeof id === 'string' ? [id, value] : undefined
  } catch {
    return undefined
  }
}
