import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { hasCode, MooringError } from '../../shared/errors.ts'
import { type Archive, type DebianPackage, type MavenArtifact, nameOf, type PythonWheel } from './archives.ts'
import { downloadDebian } from './debian.ts'
import { runTool, type Tool } from './tools.ts'

/** Plugin of Maven that downloads an artifact without a project. */
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy'

/** Directories of one client. */
interface Directories {
  /** Files of the client itself. */
  readonly state: string
  /** Directory that gets the archives, and nothing else. */
  readonly into: string
}

async function downloadMaven(artifacts: readonly MavenArtifact[], { state, into }: Directories): Promise<void> {
  for (const { name } of artifacts) {
    const settings = [
      `-Dartifact=${name}`,
      `-DoutputDirectory=${into}`,
      '-Dmdep.useBaseVersion=true',
      `-Dmaven.repo.local=${state}`,
    ]
    await runTool('mvn', ['--batch-mode', '--quiet', MAVEN_COPY, ...settings], { cwd: into })
  }
}

async function downloadWheels(wheels: readonly PythonWheel[], { state, into }: Directories): Promise<void> {
  const wanted = wheels.map(({ name, version }) => `${name}==${version}`)
  const options = [
    '--quiet',
    '--disable-pip-version-check',
    '--no-cache-dir',
    '--no-deps',
    '--only-binary',
    ':all:',
    '--dest',
    into,
  ]
  await runTool('python3', ['-m', 'pip', 'download', ...options, ...wanted], { cwd: into, env: { TMPDIR: state } })
}

/** Programs by which the archives of a client are downloaded and unpacked. */
export const TOOLS: Readonly<Record<Archive['client'], readonly Tool[]>> = {
  maven: ['mvn', 'unzip', 'tar'],
  pip: ['python3', 'unzip'],
  apt: ['apt-get', 'dpkg-deb'],
}

const of = <C extends Archive['client']>(archives: readonly Archive[], client: C) =>
  archives.filter((archive): archive is Extract<Archive, { client: C }> => archive.client === client)

/**
 * Downloads archives by the clients of their registries into `directory`. Archives that an earlier call downloaded stay and are not
 * downloaded again, so an interrupted installation continues.
 * @returns path of each archive
 * @throws MooringError `tool_missing`, `tool_failed`, `engine_unavailable`, `archive_invalid` for other content than the pinned one
 */
export async function download(archives: readonly Archive[], directory: string): Promise<ReadonlyMap<Archive, string>> {
  const path = ({ sha256 }: Archive): string => join(directory, sha256)
  await mkdir(directory, { recursive: true })
  const wanted: Archive[] = []
  for (const archive of archives) if ((await hashOf(path(archive))) !== archive.sha256) wanted.push(archive)
  const clients = [
    { client: 'maven', run: (at: Directories) => downloadMaven(of(wanted, 'maven'), at) },
    { client: 'pip', run: (at: Directories) => downloadWheels(of(wanted, 'pip'), at) },
    { client: 'apt', run: (at: Directories) => downloadDebian(of(wanted, 'apt') satisfies readonly DebianPackage[], at) },
  ] as const
  for (const { client, run } of clients) {
    const own = of(wanted, client)
    if (own.length === 0) continue
    const directories = { state: join(directory, `${client}.state`), into: join(directory, client) }
    for (const path of Object.values(directories)) await mkdir(path, { recursive: true })
    await run(directories)
    await accept(own, directories.into, path)
  }
  return new Map(archives.map((archive) => [archive, path(archive)]))
}

/** Renames each downloaded file that has the SHA-256 of an archive to the path of the archive, and removes the others. */
async function accept(archives: readonly Archive[], from: string, path: (archive: Archive) => string): Promise<void> {
  const missing = new Set(archives)
  for (const { name } of (await readdir(from, { withFileTypes: true })).filter((entry) => entry.isFile())) {
    const file = join(from, name)
    const found = await hashOf(file)
    const archive = archives.find(({ sha256 }) => sha256 === found)
    if (archive) {
      await rename(file, path(archive))
      missing.delete(archive)
    } else await rm(file)
  }
  const [first] = missing
  if (first) {
    throw new MooringError('archive_invalid', `the download of ${nameOf(first)} does not have the SHA-256 ${first.sha256}`)
  }
}

/** SHA-256 of a file in hexadecimal, or undefined when there is no file. */
async function hashOf(file: string): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(file), hash)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
  return hash.digest('hex')
}
