import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFree } from '../../operator/server/process/address.ts'

/**
 * Ports below those that Mooring gives to database servers (operator/server/process/address.ts) and Linux to outgoing connections, so
 * that neither takes one.
 */
const FIRST = 10_000
const COUNT = 10_000

/** Returns a free port of loopback that no other test process on this machine gets before this process has ended. */
export async function freePort(): Promise<number> {
  const start = Math.floor(Math.random() * COUNT)
  for (let tried = 0; tried < COUNT; tried++) {
    const port = FIRST + ((start + tried) % COUNT)
    if (reserve(port) && (await isFree('127.0.0.1', port))) return port
  }
  throw new Error(`no free port from ${FIRST} to ${FIRST + COUNT - 1}`)
}

const fileOf = (port: number): string => join(tmpdir(), `mooring-port-${port}`)

const reserved = new Set<string>()
process.on('exit', () => {
  for (const file of reserved) rmSync(file, { force: true })
})

/** Creates the lock file of a port. A lock file of a process that has ended does not count. */
function reserve(port: number): boolean {
  const file = fileOf(port)
  if (isHeld(file)) return false
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
  reserved.add(file)
  return true
}

function isHeld(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return true
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error
    if (error.code === 'ESRCH') rmSync(file, { force: true })
    return error.code === 'EPERM'
  }
}
