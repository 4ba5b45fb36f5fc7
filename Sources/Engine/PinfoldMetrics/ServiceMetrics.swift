/// Metrics of the whole gateway, not of a worker, read from their owners at the moment of a scrape.
public struct ServiceMetrics: Sendable {
    /// In the order of the exposition.
    public private(set) var families: [ServiceFamily] = []
    /// The pinsets of the configuration in force.
    public var pinsets: [PinsetMetrics] = []
    /// The certificates of the gateway itself.
    public var certificates: [CertificateMetrics] = []
    /// The lists of revoked certificates, with their ends, and of logs, with their times.
    public var revocationLists: [ListMetrics] = []
    public var logLists: [ListMetrics] = []
    /// The moment of the scrape, in seconds since 1970.
    public var wallSeconds: Int64 = 0

    /// No metrics, to be added to.
    public init() {}

    /// Adds a family of samples.
    ///
    /// - Parameters:
    ///   - name: without a counter's `_total` or an info's `_info`.
    ///   - unit: the name's ending (`seconds`, `bytes`), where it has one.
    public mutating func add(
        _ kind: MetricKind, _ name: StaticString, unit: StaticString? = nil, _ help: StaticString,
        _ samples: [ServiceFamily.Sample]
    ) {
        families.append(
            ServiceFamily(name: name, kind: kind, help: help, unit: unit, samples: samples))
    }

    /// Adds a family of one sample without labels; a value below zero is 0.
    public mutating func add(
        _ kind: MetricKind, _ name: StaticString, unit: StaticString? = nil, _ help: StaticString,
        _ value: some BinaryInteger
    ) {
        add(kind, name, unit: unit, help, [.init(.none, value)])
    }
}

/// A metric of the whole gateway, with its values.
public struct ServiceFamily: Sendable {
    /// One value with its labels.
    public struct Sample: Sendable, Equatable {
        enum Value: Equatable {
            case number(UInt64)
            case signed(Int64)
            case millionths(UInt64)
        }

        let labels: LabelText
        let value: Value

        /// A value below zero is 0.
        public init(_ labels: LabelText, _ value: some BinaryInteger) {
            (self.labels, self.value) = (labels, .number(UInt64(clamping: value)))
        }

        /// A value that may be below zero.
        public init(_ labels: LabelText, signed value: Int64) {
            (self.labels, self.value) = (labels, .signed(value))
        }

        /// A value in millionths.
        public init(_ labels: LabelText = .none, millionths value: UInt64) {
            (self.labels, self.value) = (labels, .millionths(value))
        }
    }

    public let name: StaticString
    let kind: MetricKind
    let help: StaticString
    let unit: StaticString?
    public let samples: [Sample]
}

extension ExpositionWriter {
    /// The metrics that belong to the whole gateway.
    mutating func writeService(_ service: ServiceMetrics) {
        for one in service.families {
            family(one.name, one.kind, help: one.help, unit: one.unit)
            for sample in one.samples {
                begin(sample.labels)
                switch sample.value {
                case .number(let number): end(number)
                case .signed(let number): end(signed: number)
                case .millionths(let number): end(millionths: number)
                }
            }
        }
    }
}

/// A pinset of the configuration in force.
public struct PinsetMetrics: Sendable, Equatable {
    /// Its label.
    public var label: String
    /// Its pins, each once; the last may stand for all pins without a counter of their own.
    public var pins: [PinMetrics]
    /// Whether a server that no pin matches is refused.
    public var isEnforced: Bool
    /// When it expires, in seconds since 1970; `nil` if never.
    public var expires: Int64?
    /// Whether its pins are only reported once it has expired.
    public var isReportedAfter: Bool

    /// A pinset of these metrics.
    public init(
        label: String, pins: [PinMetrics] = [], isEnforced: Bool = true, expires: Int64? = nil,
        isReportedAfter: Bool = false
    ) {
        self.label = label
        self.pins = pins
        self.isEnforced = isEnforced
        self.expires = expires
        self.isReportedAfter = isReportedAfter
    }
}
