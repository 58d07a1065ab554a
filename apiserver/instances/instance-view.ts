import { z } from 'zod'
import { requiresTls } from '../../crds/formats/server-tls.ts'
import { Motor } from '../../crds/motor.ts'
import { InstanceReason, type SharedInstance } from '../../crds/shared-instance.ts'
import { createdAtOf, withMilliseconds } from '../resources/names-and-times.ts'
import { isInForce } from '../resources/password-in-force.ts'
import { Secret } from '../../crds/core.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'

const unclaimed = 'Null until the database exists.'
const secret = 'Null in lists and in reads without credentials.'

/** `instance` of the REST API (docs/api.md, "Instances"). */
export const InstanceView = z
  .object({
    id: z.uuid(),
    name: z.string().nullable().describe(`Name of the database. ${unclaimed}`),
    user: z.string().nullable().describe(unclaimed),
    password: z.string().nullable().describe(secret),
    isEnabled: z.boolean().describe('False: logins are rejected.'),
    identifier: z.string(),
    host: z.string().nullable().describe(unclaimed),
    port: z.int().nullable().describe(unclaimed),
    region: z.string().describe('Name of the region.'),
    createdAt: z.iso.datetime(),
    motor: Motor,
    engineVersion: z.string().nullable().describe(`Version that the server reports. ${unclaimed}`),
    expiresAt: z.iso.datetime().nullable().describe('Time of the automatic deletion.'),
    uri: z.string().nullable().describe(`Connection string. ${secret}`),
    tls: z.object({
      required: z.boolean().describe('False on a loopback host, and for a motor whose region requires none.'),
      ca: z.string().nullable().describe(`PEM of the CA of the server's certificate. ${secret}`),
    }),
    statusReason: z
      .string()
      .nullable()
      .describe(
        'Why logins do not work, and what to do, or which extension of the database is missing. Null while neither is so.',
      ),
    statusCode: z
      .string()
      .nullable()
      .describe(
        'Reason as one word, such as `ServerUnavailable`, or `ExtensionUnsupported` while logins work. Null with `statusReason`.',
      ),
    state: z.literal('deleting').optional().describe('Only in the 202 answer to a deletion.'),
  })
  .meta({
    id: 'Instance',
    examples: [
      {
        id: '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10',
        name: 'pr42k7q2mz4a7e',
        user: 'pr42k7q2mz4a7e',
        password: '(24 characters)',
        isEnabled: true,
        identifier: 'pr-42',
        host: '127.0.0.1',
        port: 15432,
        region: 'local',
        createdAt: '2026-01-02T03:04:05.000Z',
        motor: 'postgresql-15.4.0',
        engineVersion: '15.4',
        expiresAt: null,
        uri: 'postgresql://pr42k7q2mz4a7e:…@127.0.0.1:15432/pr42k7q2mz4a7e',
        tls: { required: false, ca: null },
        statusReason: null,
        statusCode: null,
      },
      {
        id: '8b0c6f0e-2d41-4d0c-9a57-6f1d0a4f7c22',
        name: 'shopx4d7w2c5rb',
        user: 'shopx4d7w2c5rb',
        password: '(24 characters)',
        isEnabled: true,
        identifier: 'shop',
        host: 'mysql.databases.example.com',
        port: 3306,
        region: 'fra',
        createdAt: '2026-01-02T03:04:05.000Z',
        motor: 'mysql-8.0.29',
        engineVersion: '8.0.29',
        expiresAt: null,
        uri: 'mysql://shopx4d7w2c5rb:…@mysql.databases.example.com:3306/shopx4d7w2c5rb?ssl-mode=VERIFY_IDENTITY&ssl-ca=ca.crt',
        tls: { required: true, ca: '-----BEGIN CERTIFICATE-----…' },
        statusReason: null,
        statusCode: null,
      },
      {
        id: '5f7a0b9d-13c8-4f57-8e1b-2c4d6a8e0f13',
        name: 'eventsm3v7t5k2qn',
        user: 'eventsm3v7t5k2qn',
        password: '(24 characters)',
        isEnabled: true,
        identifier: 'events',
        host: '127.0.0.1',
        port: 27018,
        region: 'local',
        createdAt: '2026-01-02T03:04:05.000Z',
        motor: 'mongodb-5.0.9',
        engineVersion: '5.0.9',
        expiresAt: null,
        uri: 'mongodb://eventsm3v7t5k2qn:…@127.0.0.1:27018/eventsm3v7t5k2qn?authSource=eventsm3v7t5k2qn&directConnection=true&maxPoolSize=10',
        tls: { required: false, ca: null },
        statusReason: null,
        statusCode: null,
      },
    ],
  })
export type InstanceView = z.output<typeof InstanceView>

/** Data of a view that the instance itself does not contain. */
export interface InstanceAbout {
  /** Name of its region. */
  readonly region: string
  readonly credentials?: Credentials | undefined
}

const UNKNOWN = { password: null, uri: null, ca: null }
const orNull = <T>(value: T | undefined): T | null => value ?? null

/** Renders an instance. Pure. An instance that is being deleted shows as disabled. */
export function instanceView({ metadata, spec, status }: SharedInstance, { region, credentials }: InstanceAbout): InstanceView {
  const { password, uri, ca } = credentials ?? UNKNOWN
  const seen: NonNullable<SharedInstance['status']> = status ?? {}
  return {
    id: metadata.uid,
    name: orNull(seen.name),
    user: orNull(seen.user),
    password,
    isEnabled: metadata.deletionTimestamp === undefined && seen.isEnabled === true,
    identifier: spec.identifier,
    host: orNull(seen.host),
    port: orNull(seen.port),
    region,
    createdAt: createdAtOf(metadata),
    motor: spec.motor,
    engineVersion: orNull(seen.engineVersion),
    expiresAt: spec.expiresAt === undefined ? null : withMilliseconds(spec.expiresAt),
    uri,
    tls: { required: seen.host === undefined || requiresTls({ host: seen.host, tls: seen.tls }), ca },
    ...reasonOf({ metadata, status }),
  }
}

type Reason = Pick<InstanceView, 'statusReason' | 'statusCode'>
const reason = (statusCode: string, statusReason: string): Reason => ({ statusReason, statusCode })

/** Returns why logins of an instance do not work, as the operator reports it. */
function reasonOf(instance: Pick<SharedInstance, 'metadata' | 'status'>): Reason {
  const condition = conditionOf(instance, 'Ready')
  const isDeleting = instance.metadata.deletionTimestamp !== undefined
  // Also during a deletion: this condition may say why the deletion does not end.
  if (condition?.status === 'False') return reason(condition.reason, condition.message)
  if (isDeleting) return reason(InstanceReason.Deleting, 'the database is being deleted')
  if (condition?.status === 'True') return { statusReason: null, statusCode: null }
  return reason(InstanceReason.Claiming, 'the database is being created')
}

/** Fields of an instance for callers with the right to read Secrets. `ca` is PEM, null when the server's certificate needs none. */
export interface Credentials {
  readonly password: string
  readonly uri: string
  readonly ca: string | null
}

/** Keys of a Service Binding Secret that the API shows; the Secret has more. */
const Binding = z.object({ password: z.base64().min(1), uri: z.base64().min(1), 'ca.crt': z.base64().optional() })

const decode = (base64: string) => Buffer.from(base64, 'base64').toString('utf8')

/**
 * Reads the credentials from the Secret that the instance's status names.
 * @returns undefined while the Secret is missing or incomplete, or has another password than the one in force
 * @throws StoreError
 */
export async function readCredentials(store: Store, { metadata, status }: SharedInstance): Promise<Credentials | undefined> {
  const name = status?.secretRef?.name
  const secret = name === undefined ? undefined : await store.get(Secret, { namespace: metadata.namespace, name })
  if (!secret || !isInForce(secret, status)) return undefined
  const binding = Binding.safeParse(secret.data)
  if (!binding.success) return undefined
  const { password, uri, 'ca.crt': ca } = binding.data
  return { password: decode(password), uri: decode(uri), ca: ca ? decode(ca) : null }
}
