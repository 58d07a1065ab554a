import { createHash } from 'node:crypto'
import { z } from 'zod'
import { BackupId } from '../../agent-state.ts'

const Part = z.object({
  /** Key below the prefix of the database. */
  key: z.string(),
  sizeBytes: z.int().min(0),
  /** SHA-256 of the object's bytes, in hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type Part = z.output<typeof Part>

/** Content of `base/{id}/manifest.json`. It is written last: a backup exists when its manifest does. */
export const Manifest = z.object({
  format: z.literal(1),
  id: BackupId,
  kind: z.enum(['scheduled', 'requested']),
  engineVersion: z.string(),
  /** Identity of the cluster of databases, which each data directory gets at its creation. */
  systemIdentifier: z.string(),
  timeline: z.int().min(1),
  /** Numbers of the first and the last segment of WAL that recovery from this backup needs. */
  startSegment: z.int().min(0),
  stopSegment: z.int().min(0),
  startedAt: z.iso.datetime(),
  /** First time that can be restored from this backup, by the server's clock. */
  finishedAt: z.iso.datetime(),
  /** Size of the files in bytes, before compression. */
  dataBytes: z.int().min(0),
  /** Databases at the end of the backup, which a drill must find. */
  databases: z.array(z.object({ name: z.string(), sizeBytes: z.int() })),
  parts: z.array(Part).min(1),
})
export type Manifest = z.output<typeof Manifest>

const Envelope = z.object({ sha256: z.string(), manifest: z.unknown() })

/** Returns the text of a manifest, with a checksum of itself. */
export function writeManifest(manifest: Manifest): string {
  return `${JSON.stringify({ sha256: digest(manifest), manifest })}\n`
}

/** Parses {@link writeManifest}; undefined when the text is damaged. */
export function readManifest(text: string): Manifest | undefined {
  try {
    const { sha256, manifest } = Envelope.parse(JSON.parse(text))
    return digest(manifest) === sha256 ? Manifest.parse(manifest) : undefined
  } catch {
    return undefined
  }
}

function digest(manifest: unknown): string {
  return createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
}
