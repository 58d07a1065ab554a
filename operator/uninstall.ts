import { LOG_SETTINGS, runTask } from '../process/run.ts'
import { oneOf, Switch, whole } from '../process/setting-rules.ts'
import { createSettingsParser, type SettingsOf, withDefault } from '../process/settings.ts'
import { createKubernetesStore } from '../store/kubernetes.ts'
import { loadClusterConfig } from '../store/kubernetes/credentials.ts'
import { removeData, removeDefinitions } from './uninstall/data.ts'

const SETTINGS = {
  step: withDefault(oneOf(['data', 'definitions']), '<step>', [
    'data',
    'data: before the chart’s objects are deleted; definitions: after that',
  ]),
  deleteData: withDefault(Switch, '[on|off]', [
    'off',
    'delete databases with all data; else nothing is done while there are any',
  ]),
  revision: withDefault(whole(0, 999_999_999), '<n>', ['0', 'revision of the release, for the advice that a refusal gives']),
  ...LOG_SETTINGS,
} as const

/** Program that `helm uninstall` runs before and after its own work. Exit status 1 with a message stops the uninstallation. */
await runTask<SettingsOf<typeof SETTINGS>>({
  parse: createSettingsParser({
    program: 'node operator/uninstall.ts',
    description: 'Removes what Mooring has made in a cluster.',
    table: SETTINGS,
  }),
  async work({ step, deleteData, revision }, log) {
    await using store = createKubernetesStore({ config: await loadClusterConfig(process.env), fieldManager: 'mooring-uninstall' })
    if (step === 'data') await removeData({ store, log }, { deleteData, revision })
    else await removeDefinitions({ store, log })
  },
})
