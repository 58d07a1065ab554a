import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { adminSecretName } from '../../../operator/server/credentials.ts'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { holdersOf, type ProcessId } from '../../../operator/server/process/spawn/proc.ts'
import { readRecord } from '../../../operator/server/process/files/record.ts'
import { isReady } from '../../../store/conditions.ts'
import type { Store } from '../../../store/port.ts'
import { openStateOf } from '../deployment/state-of.ts'

const serversIn = (dataDir: string): string => join(dataDir, 'servers')

async function serverDirectories(dataDir: string): Promise<readonly string[]> {
  return readdir(serversIn(dataDir)).catch(() => [])
}

/** Every process that holds the data of an engine of `dataDir`, one that is still being made included. */
export async function engineProcesses(dataDir: string): Promise<readonly ProcessId[]> {
  const directories = (await serverDirectories(dataDir)).flatMap((uid) => {
    const { data, unfinished } = serverPaths(serversIn(dataDir), uid)
    return [data, unfinished]
  })
  return (await Promise.all(directories.map(holdersOf))).flat()
}

/** The engines proper: those alive whose parent is no engine process. One a server when all is well. */
export async function mainProcesses(dataDir: string): Promise<readonly ProcessId[]> {
  const processes = await engineProcesses(dataDir)
  const parents = await Promise.all(processes.map(({ pid }) => parentOf(pid)))
  const pids = new Set(processes.map(({ pid }) => pid))
  return processes.filter((_, index) => {
    const parent = parents[index]
    return parent !== undefined && !pids.has(parent)
  })
}

/** Undefined once the process has gone. */
async function parentOf(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
}

/** Whether initdb is at work on a server of `dataDir`. */
export async function isInitialising(dataDir: string): Promise<boolean> {
  const uids = await serverDirectories(dataDir)
  const holders = await Promise.all(uids.map((uid) => holdersOf(serverPaths(serversIn(dataDir), uid).unfinished)))
  return holders.flat().length > 0
}

/** How the operator gets into each server of `dataDir` that is up. */
export async function adminTargets(dataDir: string): Promise<readonly AdminTarget[]> {
  await using state = await openStateOf(dataDir)
  const { items } = await state.store.list(DatabaseServer)
  return await Promise.all(items.filter(isReady).map((server) => targetOf(dataDir, state.store, server)))
}

async function targetOf(dataDir: string, store: Store, { metadata }: DatabaseServer): Promise<AdminTarget> {
  const secret = await store.get(Secret, { namespace: SHARED_NAMESPACE, name: adminSecretName(metadata.name) })
  const record = await readRecord(serverPaths(serversIn(dataDir), metadata.uid))
  const [user, password] = ['username', 'password'].map((key) => decodeSecret(secret?.data ?? {}, key))
  if (user === undefined || password === undefined || !record)
    throw new Error(`${metadata.name} is said to run, but has no record`)
  return { host: '127.0.0.1', port: record.port, user, password }
}
