/** File of a package registry, pinned to one content. */
interface Pinned {
  readonly bytes: number
  /** SHA-256 of the file, in lower-case hexadecimal. */
  readonly sha256: string
}

/** Artifact of Maven. */
export interface MavenArtifact extends Pinned {
  readonly client: 'maven'
  /** `group:artifact:version` */
  readonly name: string
}

/** Wheel of the Python package index. */
export interface PythonWheel extends Pinned {
  readonly client: 'pip'
  readonly name: string
  readonly version: string
}

/** Package of Debian for amd64. */
export interface DebianPackage extends Pinned {
  readonly client: 'apt'
  readonly suite: 'bullseye' | 'bookworm' | 'bookworm-security'
  readonly name: string
  readonly version: string
}

export type Archive = MavenArtifact | PythonWheel | DebianPackage

const CLIENT_NAMES = { maven: 'Maven', pip: 'Python', apt: 'Debian' } as const

/** Returns the name of an archive in messages: the registry, and the package with its version. */
export function nameOf(archive: Archive): string {
  const name = archive.client === 'maven' ? archive.name : `${archive.name} ${archive.version}`
  return `${CLIENT_NAMES[archive.client]} ${name}`
}

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Sum of the sizes of archives. */
export const sizeOf = (archives: readonly Archive[]): number => archives.reduce((sum, { bytes }) => sum + bytes, 0)
