import { spawn } from 'node:child_process'
import { access, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance } from '../api/answers.ts'
import { CACHE, unpackedPackages } from '../debian-packages.ts'

/** Stock programs of MySQL, MariaDB and MongoDB, unpacked into the user's cache beside what the machine has. */

/** Client of Debian 12 and its libraries. */
const MARIADB = [
  ...['mariadb-client-core', 'mariadb-client', 'libmariadb3', 'libc6', 'libedit2', 'libncurses6', 'libtinfo6', 'libssl3'],
  ...['zlib1g', 'libstdc++6', 'libgcc-s1', 'libbsd0', 'libmd0'],
]
/** MySQL's own client, which only the newest Debian has, and its libraries. */
const MYSQL = [
  ...['mysql-client-core', 'mysql-client', 'libc6', 'libedit2', 'libfido2-1', 'libgcc-s1', 'libgoogle-perftools4t64'],
  ...[
    'libgssapi-krb5-2',
    'libkrb5-3',
    'libk5crypto3',
    'libkrb5support0',
    'libcom-err2',
    'libkeyutils1',
    'libunwind8',
    'liblzma5',
  ],
  ...['libssl3t64', 'libstdc++6', 'libzstd1', 'zlib1g', 'libtinfo6', 'libbsd0', 'libmd0', 'libcbor0.10', 'libudev1', 'libcap2'],
]
const MONGOSH = 'mongosh@2.12.0'
const PYMYSQL = { name: 'PyMySQL', version: '1.2.4' } as const

/** PyMongo and the package that it cannot be imported without. */
const PYMONGO = ['pymongo==4.20.0', 'dnspython==2.9.2'] as const

/** Runs a program and returns its stdout. @throws Error with its stderr when it fails */
export async function runProgram([path = '', ...args]: readonly string[], input = ''): Promise<string> {
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // A program that fails early reads no more of its input.
  child.stdin.on('error', () => undefined).end(input)
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code === 0) return stdout
  throw new Error(`${path} ended with ${String(code)}: ${stderr}`)
}

/** Client and dump program of MySQL's protocol. */
export interface MysqlPrograms {
  /** Returns the command of a program for an instance, whose CA is saved in `directory`. Options and the database are to follow. */
  readonly client: (instance: Instance, directory: string) => Promise<readonly string[]>
  readonly dump: (instance: Instance, directory: string) => Promise<readonly string[]>
}

async function login({ id, host, port, user, password, tls }: Instance, directory: string, verify: string) {
  const args = ['--no-defaults', `--host=${host}`, `--port=${port}`, `--user=${user}`, `--password=${password}`]
  if (!tls.required) return args
  const file = join(directory, `${id}.pem`)
  await writeFile(file, tls.ca ?? '')
  return [...args, `--ssl-ca=${file}`, verify]
}

const mariadb = () => unpackedPackages('bookworm', MARIADB)

/** Returns the command of MariaDB's client without any options. */
export const mariadbCommand = async (): Promise<readonly string[]> => (await mariadb()).command('usr/bin/mariadb')

/** `mariadb` and `mariadb-dump` of MariaDB 10.11, which Debian also calls `mysql` and `mysqldump`. */
export async function mariadbPrograms(): Promise<MysqlPrograms> {
  const unpacked = await mariadb()
  const of = (name: string) => async (instance: Instance, directory: string) => [
    ...unpacked.command(`usr/bin/${name}`),
    ...(await login(instance, directory, '--ssl-verify-server-cert')),
  ]
  return { client: of('mariadb'), dump: of('mariadb-dump') }
}

/** `mysql` and `mysqldump` of MySQL 9. */
export async function mysqlPrograms(): Promise<MysqlPrograms> {
  const unpacked = await unpackedPackages('sid', MYSQL)
  const of = (name: string) => async (instance: Instance, directory: string) => [
    ...unpacked.command(`usr/bin/${name}`),
    ...(await login(instance, directory, '--ssl-mode=VERIFY_IDENTITY')),
    // An unpacked client does not find its plugins, of which `mysql_native_password` is one.
    `--plugin-dir=${join(unpacked.root, 'usr/lib/mysql/plugin')}`,
  ]
  return { client: of('mysql'), dump: of('mysqldump') }
}

/**
 * Returns the command of a Python that has PyMySQL and nothing else outside its own library: no RSA, which needs the package `cryptography`.
 * The arguments are a program and its arguments.
 */
export async function pythonWithPymysql(): Promise<readonly string[]> {
  const directory = join(CACHE, `${PYMYSQL.name}-${PYMYSQL.version}`)
  if (!(await exists(directory))) {
    await install(directory, (work) => [
      ...['python3', '-m', 'pip', 'install', '--quiet', '--no-deps', '--target', work],
      `${PYMYSQL.name}==${PYMYSQL.version}`,
    ])
  }
  return ['env', `PYTHONPATH=${directory}`, 'python3', '-S', '-c']
}

/** Returns the command of a Python that has PyMongo and what it needs. The arguments are a program and its arguments. */
export async function pythonWithPymongo(): Promise<readonly string[]> {
  const directory = join(CACHE, PYMONGO.join('-').replaceAll('==', '-'))
  if (!(await exists(directory))) {
    const options = ['--quiet', '--no-deps', '--only-binary=:all:']
    await install(directory, (work) => ['python3', '-m', 'pip', 'install', ...options, '--target', work, ...PYMONGO])
  }
  return ['env', `PYTHONPATH=${directory}`, 'python3', '-S', '-c']
}

/** Returns the command of MongoDB's shell, which npm installs into the cache the first time. */
export async function mongosh(): Promise<readonly string[]> {
  const root = join(CACHE, MONGOSH)
  const program = join(root, 'node_modules/mongosh/bin/mongosh.js')
  // Without its scripts, which would compile optional add-ons.
  const options = ['--ignore-scripts', '--no-audit', '--no-fund']
  if (!(await exists(program))) await install(root, (work) => ['npm', 'install', '--prefix', work, ...options, MONGOSH])
  return [process.execPath, program, '--quiet', '--norc']
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Creates a directory of the cache by a command that installs into another one. */
async function install(root: string, commandFor: (work: string) => readonly string[]): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const work = await mkdtemp(join(CACHE, 'installing-'))
  try {
    await runProgram(commandFor(work))
    await rename(work, root)
  } catch (error) {
    // Another test file may have installed it meanwhile.
    if (!(await exists(root))) throw error
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
