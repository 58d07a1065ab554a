import { randomUUID } from 'node:crypto'
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'

interface Deps {
  readonly path: string
  /** First line; a file with another first line is ignored. */
  readonly title: string
  /** Returns all current values. */
  readonly live: () => Iterable<readonly [id: string, value: unknown]>
  /** Interval between writes, in milliseconds. */
  readonly everyMs?: number
  /** Delay after a failed write, in milliseconds. */
  readonly againMs?: number
  readonly log: Pick<Logger, 'warn'>
}

/** Values by id that outlive the process, at most a moment old. */
export interface LogFile extends AsyncDisposable {
  /** Values of the previous process. The caller deletes the entries that it no longer needs. */
  readonly found: Map<string, unknown>
  /** Sets a value, which is written within 100 ms; `undefined` deletes it. */
  set(id: string, value: unknown): void
  /** Writes pending changes now. */
  flush(): Promise<void>
}

const EVERY_MS = 100
/** Delay after a failure: each try writes all values, and a full disk usually stays full. */
const AGAIN_MS = 10_000
/** Bytes of outdated lines, on top of the size of the current values, before the file is rewritten. */
const SLACK_BYTES = 1024 * 1024
/** Characters per write: one large string would block visitors. */
const CHUNK_CHARACTERS = 256 * 1024

/**
 * Opens or creates a log file, mode 0600. Each line is an id and its value; the last line of an id counts. The file is rewritten under
 * a temporary name and renamed when half of it is outdated. Truncated lines are skipped, so it is readable after any crash.
 */
export async function openLogFile(deps: Deps): Promise<LogFile> {
  const { path, title, live, everyMs = EVERY_MS, againMs = AGAIN_MS, log } = deps
  const found = await read(path, title)
  /** Pending changes. */
  const changed = new Map<string, unknown>()
  let handle: FileHandle | undefined
  let [bytes, aliveBytes] = [0, 0]
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()
  let disposed = false
  let failed = false

  function set(id: string, value: unknown): void {
    if (disposed) return
    // Moved to the end, so that a truncated file has the state of an earlier moment.
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
      log.warn({ err: error }, 'writing the snapshot failed; retrying')
      await handle?.close().catch((closing: unknown) => log.warn({ err: closing }, 'closing the snapshot file failed'))
      // The next try rewrites the file: the extent of the failed write is unknown.
      handle = undefined
      failed = true
      // Later changes do not shorten this delay.
      clearTimeout(timer)
      if (!disposed) timer = setTimeout(() => void flush(), againMs).unref()
    }
  }

  async function append(file: FileHandle): Promise<void> {
    const lines = [...changed].map(([id, value]) => lineOf(id, value))
    changed.clear()
    for (const text of chunks(lines)) bytes += (await file.write(text)).bytesWritten
  }

  async function renew(): Promise<void> {
    const temporary = join(dirname(path), `.${randomUUID()}.tmp`)
    // 'wx' does not follow a link that another process created.
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

/** Parses a file of this title; returns no values when the title differs. Never throws. */
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
