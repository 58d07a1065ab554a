import { useId } from 'preact/hooks'
import type { ApiFailure } from '../../api/client.ts'
import type { Plan } from '../../api/types.ts'
import { messagesOf } from '../../field-messages.ts'
import { Errors } from '../../parts/form.tsx'
import { priceOf, sizeOf } from './plans.ts'

interface PlanChoiceProps {
  readonly plans: readonly Plan[]
  readonly value: string
  readonly failure: ApiFailure | undefined
  readonly onPlan: (id: string) => void
  /** Returns why a plan cannot be chosen; undefined when it can. */
  readonly blockedBy?: (plan: Plan) => string | undefined
  readonly hint?: string | undefined
  /** Whether the card around the choice has the title "Plan" already. */
  readonly isTitled?: boolean
}

/** Choice of one plan; each is shown with its size and price. */
export function PlanChoice({
  plans,
  value,
  failure,
  onPlan,
  blockedBy = () => undefined,
  hint,
  isTitled = false,
}: PlanChoiceProps) {
  const name = useId()
  const messages = messagesOf(failure, 'plan')
  const isWrong = messages.length > 0
  return (
    <fieldset
      {...{ role: 'radiogroup', class: 'plans', 'aria-invalid': isWrong ? 'true' : undefined }}
      aria-describedby={isWrong ? `${name}-error` : undefined}
    >
      <legend class={isTitled ? 'hidden' : ''}>Plan</legend>
      {plans.map((plan) => {
        const blocker = blockedBy(plan)
        return (
          <label key={plan.id} class="plan">
            <input
              {...{ type: 'radio', name, value: plan.id, checked: plan.id === value, disabled: blocker !== undefined }}
              onChange={() => onPlan(plan.id)}
            />
            <span class="plan-main">
              <strong>{plan.name}</strong>
              <span class="sub">{sizeOf(plan)}</span>
              {blocker !== undefined && <span class="sub">{blocker}</span>}
            </span>
            <span class="price">{priceOf(plan.price)}</span>
          </label>
        )
      })}
      {hint !== undefined && <p class="hint">{hint}</p>}
      <Errors id={`${name}-error`} messages={messages} />
    </fieldset>
  )
}
