import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Condition } from '../../crds/kind.ts'
import { EXTENSIONS_INSTALLED, ExtensionReason } from '../../crds/shared-instance.ts'
import { notReady, withCondition, withoutCondition } from '../../store/conditions.ts'
import type { EngineAdmin, InstalledExtensions } from '../engines/engine.ts'
import type { StatusFields } from '../reporter.ts'
import type { Suspicions } from '../shared-instance/slots.ts'

/** State on which the step about extensions depends. */
interface Observed {
  readonly database: DedicatedDatabase
  /** Whether the database has other extensions than the status. */
  readonly extensionsChanged: boolean
}

/**
 * Returns the step that installs missing extensions, and reads those of a restored database; none when the status shows the desired state. A
 * rejected extension is tried again at every reconcile: the reason may have gone. Pure.
 */
export function extensionSteps({ database: { spec, status }, extensionsChanged }: Observed): readonly 'extensions'[] {
  const { extensions } = status ?? {}
  const isInstalled = spec.extensions.every((name) => extensions?.includes(name))
  const isKnown = extensions !== undefined || spec.restoreFrom === undefined
  const isSeen = !extensionsChanged && (status?.extensionsVersion ?? 0) >= (spec.extensionsVersion ?? 0)
  return isInstalled && isKnown && isSeen ? [] : ['extensions']
}

interface Target {
  readonly database: DedicatedDatabase
  /** Name of the database on its server. */
  readonly name: string
  readonly admin: Pick<EngineAdmin, 'installExtensions'>
  /** Extensions that the Region allows for the motor. */
  readonly allowedExtensions: readonly string[]
}

/** Installs the desired extensions. Those that the Region does not allow are among the refused ones. */
export async function installExtensions(
  { suspicions }: { readonly suspicions: Pick<Suspicions, 'extensions'> },
  { database: { metadata, spec }, name, admin, allowedExtensions }: Target,
): Promise<InstalledExtensions> {
  const allowed = spec.extensions.filter((each) => allowedExtensions.includes(each))
  const { installed, refused } = await admin.installExtensions(name, allowed)
  suspicions.extensions.delete(metadata.uid)
  const notAllowed = spec.extensions
    .filter((each) => !allowed.includes(each))
    .map((each) => ({
      name: each,
      reason: 'unavailable' as const,
      message: `the extension ${each} is not one that the Region allows for ${spec.motor}`,
    }))
  return { installed, refused: [...notAllowed, ...refused] }
}

/** Returns the fields of the status after an attempt to install extensions; none without one. `conditions`: those beside Ready. */
export function extensionFields(
  { spec, status, metadata }: DedicatedDatabase,
  result: InstalledExtensions | undefined,
  now: Date,
): Pick<StatusFields<typeof DedicatedDatabase>, 'extensions' | 'extensionsVersion' | 'conditions'> {
  const isComplete = spec.extensions.every((name) => (result?.installed ?? status?.extensions)?.includes(name))
  const refused = isComplete ? [] : result?.refused
  const conditions = refused && conditionsOf(status?.conditions, refused, { generation: metadata.generation, now })
  return {
    ...(result && { extensions: [...result.installed], extensionsVersion: spec.extensionsVersion }),
    ...(conditions && { conditions }),
  }
}

function conditionsOf(
  before: readonly Condition[] | undefined,
  refused: InstalledExtensions['refused'],
  stamp: { readonly generation: number; readonly now: Date },
): readonly Condition[] | undefined {
  const [first] = refused
  if (!first) return before && withoutCondition(before, EXTENSIONS_INSTALLED)
  const reason = first.reason === 'conflict' ? ExtensionReason.Conflict : ExtensionReason.Unsupported
  const message = refused.map((each) => each.message).join('; ')
  return withCondition(before, notReady(reason, message), { type: EXTENSIONS_INSTALLED, ...stamp })
}
