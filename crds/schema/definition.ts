import type { Kind, Rule } from '../kind.ts'
import { CATALOG_KINDS } from './roles.ts'
import { type StructuralSchema, structuralSchema, type ValidationRule, addRule, addTransitionRule } from './structural-schema.ts'

/** Category `kubectl get mooring`: the kinds that a member of a namespace may read, and the catalog (crds/schema/roles.ts). */
const CATEGORY = 'mooring'
/** Category `kubectl get mooring-tenancy`: organizations and namespaces, which only a platform administrator may read. */
const TENANCY = 'mooring-tenancy'

const TYPE_META: Record<string, StructuralSchema> = {
  apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
  kind: { type: 'string', description: 'Kind of this object.' },
  metadata: { type: 'object' },
}

/** Schema of `metadata` for rules that read the name. A rule can only use declared fields, and Kubernetes allows `metadata.name`. */
const NAMED: StructuralSchema = { type: 'object', properties: { name: { type: 'string', maxLength: 253 } } }

const PARTS = { spec: 'Desired state.', status: 'Observed state, written only by the operator.' }

/** Builds the CustomResourceDefinition (apiextensions.k8s.io/v1) of one of Mooring's own kinds. */
export function customResourceDefinition(kind: Kind) {
  const { group, plural, singular, shortNames, columns } = kind
  const category = kind.namespaced || CATALOG_KINDS.includes(plural) ? CATEGORY : TENANCY
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular, shortNames, categories: [category] },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: objectSchema(kind) },
        },
      ],
    },
  }
}

/** Builds the schema of a whole object: the schema of its body, with the kind's rules attached. */
export function objectSchema(kind: Kind): StructuralSchema {
  const body = structuralSchema(kind.body)
  for (const [name, description] of Object.entries(PARTS)) {
    const part = body.properties?.[name]
    if (part) part.description ??= description
  }
  for (const path of kind.immutable) addTransitionRule(body, path)
  for (const rule of kind.rules) addRule(schemaUnder(rule, body), celRule(rule))
  const metadata = kind.rules.every(isOverSpec) ? TYPE_META : { ...TYPE_META, metadata: NAMED }
  return { ...body, description: kind.description, properties: { ...metadata, ...body.properties } }
}

/** Returns the schema that a rule is attached to: that of the spec, or of the whole object. */
function schemaUnder(rule: Rule, body: StructuralSchema): StructuralSchema {
  return (isOverSpec(rule) ? body.properties?.spec : undefined) ?? body
}

const isOverSpec = ({ field }: Rule): boolean => !field.startsWith('metadata.')

function celRule(rule: Rule): ValidationRule {
  const { cel, message, field } = rule
  const path = isOverSpec(rule) ? field.slice('spec'.length) : `.${field}`
  return path === '' ? { rule: cel, message } : { rule: cel, message, fieldPath: path }
}
