import { copyFile, mkdtemp, rm, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createEmbeddedStore } from '../../../store/embedded.ts'
import type { Store } from '../../../store/port.ts'
import { Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { type Family, partsOf } from '../../../crds/motor.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import { type AdminTarget, type EngineAdmin, LoginState, type TenantState } from '../../../operator/engines/engine.ts'
import { ENGINES } from '../../../operator/engines/index.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { adminSecretName } from '../../../operator/server/credentials.ts'
import { serverPaths, readRecord } from '../../../operator/server/process/files/paths.ts'
import { holdersOf, isAlive, type ProcessId } from '../../../operator/server/process/spawn/proc.ts'
import { isReady } from '../../../store/conditions.ts'
import type { Mooring } from './mooring.ts'

/** Copy of the state in a data directory, for reading while its owner, running or dead, keeps the lock. */
export interface StateCopy extends AsyncDisposable {
  readonly store: Store
}

/** Copies and opens the state. */
export async function openStateOf(dataDir: string): Promise<StateCopy> {
  await using opened = new AsyncDisposableStack()
  const copy = await mkdtemp(join(tmpdir(), 'mooring-state-'))
  opened.defer(() => rm(copy, { recursive: true }))
  for (const name of ['state.db', 'state.db-wal']) await copyFile(join(dataDir, name), join(copy, name))
  const store = opened.use(await createEmbeddedStore({ path: join(copy, 'state.db') }))
  const ownership = opened.move()
  return { store, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}

const serversIn = (dataDir: string): string => join(dataDir, 'servers')

async function serverDirectories(dataDir: string): Promise<readonly string[]> {
  return readdir(serversIn(dataDir)).catch(() => [])
}

/** Returns all processes with the data of a server of `dataDir`, including one that is being created. */
export async function engineProcesses(dataDir: string): Promise<readonly ProcessId[]> {
  const directories = (await serverDirectories(dataDir)).flatMap((uid) => {
    const { data, unfinished } = serverPaths(serversIn(dataDir), uid)
    return [data, unfinished]
  })
  return (await Promise.all(directories.map(holdersOf))).flat()
}

/** Returns the main processes of servers: live ones whose parent is not a server process. Normally one for each server. */
export async function mainProcesses(dataDir: string): Promise<readonly ProcessId[]> {
  const processes = await engineProcesses(dataDir)
  const parents = await Promise.all(processes.map(({ pid }) => parentOf(pid)))
  const pids = new Set(processes.map(({ pid }) => pid))
  return processes.filter((_, index) => {
    const parent = parents[index]
    return parent !== undefined && !pids.has(parent)
  })
}

/** Returns the parent's id, undefined once the process has ended. */
async function parentOf(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
}

/** Returns the directory of the first server of a motor. @throws Error when there is none */
export async function serverDirectory(dataDir: string, motor: string): Promise<string> {
  await using state = await openStateOf(dataDir)
  const { items } = await state.store.list(DatabaseServer)
  const server = items.find(({ spec }) => spec.motor === motor)
  if (!server) throw new Error(`there is no server of ${motor}`)
  return serverPaths(serversIn(dataDir), server.metadata.uid).root
}

/** Returns the running main process of the first server of a motor. */
export async function processOf(dataDir: string, motor: string): Promise<ProcessId | undefined> {
  const uid = basename(await serverDirectory(dataDir, motor))
  const record = await readRecord(serverPaths(serversIn(dataDir), uid))
  return record?.process && (await isAlive(record.process)) ? record.process : undefined
}

/** Whether initdb is running for a server of `dataDir`. */
export async function isInitialising(dataDir: string): Promise<boolean> {
  const uids = await serverDirectories(dataDir)
  const holders = await Promise.all(uids.map((uid) => holdersOf(serverPaths(serversIn(dataDir), uid).unfinished)))
  return holders.flat().length > 0
}

/** Login of the operator to one server. */
export interface ServerLogin {
  readonly family: Family
  readonly target: AdminTarget
}

/** Returns the operator's logins of all running servers of `dataDir`. */
export async function adminLogins(dataDir: string): Promise<readonly ServerLogin[]> {
  await using state = await openStateOf(dataDir)
  const { items } = await state.store.list(DatabaseServer)
  return await Promise.all(
    items.filter(isReady).map(async (server) => ({
      family: partsOf(server.spec.motor).family,
      target: await targetOf(dataDir, state.store, server),
    })),
  )
}

function openAdmin({ family, target }: ServerLogin): EngineAdmin {
  const engine = ENGINES.get(family)
  if (!engine) throw new Error(`Mooring has no engine ${family}`)
  return engine.admin(target)
}

async function targetOf(dataDir: string, store: Store, { metadata }: DatabaseServer): Promise<AdminTarget> {
  const secret = await store.get(Secret, { namespace: SHARED_NAMESPACE, name: adminSecretName(metadata.name) })
  const record = await readRecord(serverPaths(serversIn(dataDir), metadata.uid))
  const [user, password] = ['username', 'password'].map((key) => decodeSecret(secret?.data ?? {}, key))
  if (user === undefined || password === undefined || !record)
    throw new Error(`${metadata.name} has the phase of a running server, but no record`)
  return { host: '127.0.0.1', port: record.port, user, password }
}

/** State of a tenant with database and login. */
export const WHOLE: TenantState = { database: true, login: LoginState.enabled }

/** Returns the tenants in the catalogs of all servers of a data directory, by name. They must match the resources exactly. */
export async function tenantsOf(dataDir: string): Promise<Readonly<Record<string, TenantState>>> {
  const tenants: (readonly [string, TenantState])[] = []
  for (const login of await adminLogins(dataDir)) {
    await using admin = openAdmin(login)
    tenants.push(...(await admin.catalog()).tenants)
  }
  return Object.fromEntries(tenants)
}

/** Returns the expected result of {@link tenantsOf}: one complete tenant for each instance that the API lists. */
export async function tenantsListed(mooring: Mooring): Promise<Readonly<Record<string, TenantState>>> {
  const { body } = await mooring.call('GET', '/v1/instances?limit=200')
  return Object.fromEntries(body.data.instances.map(({ name }) => [name, WHOLE]))
}
