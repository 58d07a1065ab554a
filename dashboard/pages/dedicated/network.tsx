import { useState } from 'preact/hooks'
import type { ApiFailure } from '../../api/client.ts'
import { messagesOf } from '../../field-messages.ts'
import { Errors, Switch } from '../../parts/form.tsx'
import { FirewallRules } from './firewall-rules.tsx'
import { draftRule, filledRules, isSameRules, type RuleDraft, rulesOf } from './rules-draft.ts'
import type { NetworkSettings } from './save-network.ts'

/** State of a form with network settings. */
export interface NetworkDraft {
  readonly isPrivate: boolean
  /** Null: every source. */
  readonly rows: readonly RuleDraft[] | null
  /** Settings that the form was filled from. */
  readonly start: NetworkSettings
  /** Keys of the rows that were sent last, in the order of the API's errors. */
  readonly sent: readonly number[]
  readonly setPrivate: (isPrivate: boolean) => void
  readonly setRows: (rows: readonly RuleDraft[] | null) => void
  /** Fills the form from settings. */
  readonly reset: (settings: NetworkSettings) => void
  /** Returns the settings that differ from those at the start, and sets `sent`. */
  readonly send: () => Partial<NetworkSettings>
  /** Whether the form differs from the settings at the start. */
  readonly isChanged: boolean
}

/** Returns the state of a form that is filled from `settings`. */
export function useNetwork(settings: NetworkSettings): NetworkDraft {
  const [start, setStart] = useState(settings)
  const [isPrivate, setPrivate] = useState(settings.privateNetwork)
  const [rows, setRows] = useState<readonly RuleDraft[] | null>(() => rowsOf(settings))
  const [sent, setSent] = useState<readonly number[]>([])
  const firewallRules = rows && rulesOf(rows)
  const changes = {
    ...(isPrivate !== start.privateNetwork && { privateNetwork: isPrivate }),
    ...(!isSameRules(firewallRules, start.firewallRules) && { firewallRules }),
  }
  return {
    start,
    isPrivate,
    rows,
    sent,
    setPrivate,
    setRows,
    isChanged: Object.keys(changes).length > 0,
    reset(now) {
      setStart(now)
      setPrivate(now.privateNetwork)
      setRows(rowsOf(now))
      setSent([])
    },
    send() {
      setSent(filledRules(rows ?? []).map(({ key }) => key))
      return changes
    },
  }
}

const rowsOf = ({ firewallRules }: NetworkSettings): readonly RuleDraft[] | null => firewallRules?.map(draftRule) ?? null

/** Form fields of the network settings. */
export const Network = ({ network, failure }: { network: NetworkDraft; failure: ApiFailure | undefined }) => (
  <>
    <Switch
      {...{ label: 'Private network', checked: network.isPrivate, onSwitch: network.setPrivate }}
      hint="Only pods of the organization can connect, whatever the rules are. In embedded mode: only this machine."
    />
    <Errors messages={messagesOf(failure, 'privateNetwork')} />
    <FirewallRules {...{ rows: network.rows, sent: network.sent, failure, onChange: network.setRows }} />
  </>
)
