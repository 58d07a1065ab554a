// Its tests build on each other:
// @module-tag whole-file
import { killAtRandom } from './random-kills.ts'

killAtRandom('mysql-8.0.29')
