import { engineFaults } from './engine-faults.ts'

engineFaults({ motor: 'mysql-8.0.29', neighbour: 'postgresql-15.4.0', endsHung: true })
