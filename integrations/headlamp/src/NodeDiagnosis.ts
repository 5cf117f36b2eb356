import { KubeObject, KubeObjectInterface } from '@kinvolk/headlamp-plugin/lib/k8s/cluster';

/** What is shown of a NodeDiagnosis; `cargo test --test it tools` holds it against crds/. */
export interface Fields extends KubeObjectInterface {
  spec: {
    subject: { kind: string; name: string };
    nodePool?: { name: string };
  };
  status?: Status;
}

export interface Status {
  stage: string;
  cause: string;
  confidence: string;
  summary: string;
  blame?: Blame;
  evidence?: {
    object: string;
    field: string;
    observed: string;
    because: string;
    figures?: string;
  }[];
  ruledOut?: { cause: string; because: string; witness?: string }[];
  unknowns?: { question: string; command: string }[];
  suspects?: { cause: string; summary: string; command: string; lookFor: string }[];
  fix?: { summary: string; disruption?: string; steps?: Step[]; documentation: string };
  firstObservedAt: string;
  terminatesAt?: string;
  endedAt?: string;
  outcome?: string;
  machines?: { stuck: number; causes?: { cause: string; stuck: number }[] };
}

export interface Blame {
  object: string;
  field?: string;
  line?: number;
  column?: number;
  length?: number;
  caret?: number;
  excerpt?: string;
}

export interface Step {
  text: string;
  command?: string;
  risk: string;
}

export class NodeDiagnosis extends KubeObject<Fields> {
  static kind = 'NodeDiagnosis';
  static apiName = 'nodediagnoses';
  static apiVersion = 'nodewhy.dev/v1alpha1';
  static isNamespaced = false;

  static get detailsRoute() {
    return 'nodediagnosis';
  }

  static get listRoute() {
    return 'nodediagnoses';
  }

  get spec() {
    return this.jsonData.spec;
  }

  get status() {
    return this.jsonData.status;
  }

  get isOpen() {
    return this.status !== undefined && this.status.outcome === undefined;
  }
}
