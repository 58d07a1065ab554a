import { Namespace } from '../../../crds/core.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { createEmbeddedStore } from '../../../store/embedded.ts'

/**
 * Program for the crash test. It writes to the store at `argv[2]` with 8 writers until it is killed. It prints `put NAME
 * RESOURCE_VERSION.` and `deleted NAME.` for each acknowledged write, and `deleting NAME.` before each deletion. Names begin with
 * `argv[3]`.
 */
const [, , path = '', prefix = ''] = process.argv
const store = await createEmbeddedStore({ path })
const namespace = 'test'
await store.create(Namespace, { metadata: { name: namespace } }).catch(() => undefined)

async function write(name: string): Promise<void> {
  const key = { namespace, name }
  const spec = { identifier: 'crash', region: '00000000-0000-4000-8000-000000000001', motor: 'postgresql-15.4.0' } as const
  const made = await store.create(SharedInstance, { metadata: key, spec })
  process.stdout.write(`put ${name} ${made.metadata.resourceVersion}.\n`)
  const patched = await store.patchStatus(SharedInstance, key, { host: 'h'.repeat(200) })
  process.stdout.write(`put ${name} ${patched.metadata.resourceVersion}.\n`)
  if (!name.endsWith('0')) return
  process.stdout.write(`deleting ${name}.\n`)
  await store.delete(SharedInstance, key)
  process.stdout.write(`deleted ${name}.\n`)
}

async function writeOn(writer: number): Promise<never> {
  for (let count = 0; ; count += 1) await write(`${prefix}-${writer}-${count}`)
}
await Promise.all(Array.from({ length: 8 }, (_, writer) => writeOn(writer)))
