import { randomInt } from 'node:crypto'
import { isFree } from '../../../operator/server/process/address.ts'

/** Returns a free loopback port below Linux's ephemeral range, so that no other process gets it while its server is down. */
export async function reservedPort(): Promise<number> {
  const port = randomInt(20_000, 32_000)
  return (await isFree('127.0.0.1', port)) ? port : reservedPort()
}
