import { Secret } from '../../../../crds/core.ts'
import type { Store } from '../../../../store/port.ts'
import { exporterPassword } from '../../../engines/exporter.ts'
import type { Applier } from '../../../kubernetes/apply.ts'
import { type Children, removeOne } from '../children.ts'
import type { DesiredServer } from '../desired-server.ts'
import { childNames } from '../manifests.ts'
import { exporterSecretOf } from './containers.ts'

export interface ExporterLoginsDeps {
  readonly store: Store
  readonly applier: Applier
  readonly children: Pick<Children, 'certificates'>
}

/** Secrets with the logins of exporters. */
export interface ExporterLogins {
  /** Applies the Secret of a server with an exporter, before its pod is applied. @returns the password; undefined without an exporter @throws StoreError */
  prepare(desired: DesiredServer, login: { readonly adminPassword: string; readonly ca: string }): Promise<string | undefined>
  /** Deletes the Secret of a server without an exporter, after its pod was applied. @throws StoreError */
  clean(desired: DesiredServer): Promise<void>
}

export function createExporterLogins({ store, applier, children: { certificates } }: ExporterLoginsDeps): ExporterLogins {
  return {
    async prepare(desired, { adminPassword, ca }) {
      if (!desired.exporter) return undefined
      const password = exporterPassword(adminPassword)
      await applier.apply({ kind: Secret, live: certificates }, exporterSecretOf(desired.exporter, desired, { password, ca }))
      return password
    },
    async clean({ exporter, server: { metadata } }) {
      // The watch of certificates has all Secrets of servers.
      const found = certificates.get({ namespace: metadata.namespace, name: childNames(metadata.name).exporter })
      if (found && !exporter) await removeOne(store, Secret, found)
    },
  }
}
