import Documents
import PinfoldConfiguration
import SharedCacheLevel

/// Why a gateway's report is not read.
enum FleetReportError: Error, Sendable, Equatable, CaseIterable {
    /// It has not said anything yet.
    case missing
    case tooLong
    /// It is not JSON, or has not what a report has.
    case malformed
    /// Another version of the program has written it.
    case otherFormat

    /// Completes "its report …".
    var text: String {
        switch self {
        case .missing: "is not there yet"
        case .tooLong: "is too long"
        case .malformed: "cannot be read"
        case .otherFormat: "is of another version of the program"
        }
    }
}

// A report as it was found in the engine.
extension FleetReport {
    /// The greatest number that is exact in every reader of JSON.
    private static let greatest: Int64 = 1 << 53 - 1
    private static let limits = DocumentLimits(
        bytes: FleetMember.maximumReportBytes, depth: 8, values: 16_384, digits: 20)

    init(_ bytes: [UInt8]) throws(FleetReportError) {
        guard !bytes.isEmpty else { throw .missing }
        guard bytes.count <= FleetMember.maximumReportBytes else { throw .tooLong }
        guard let value = try? JSONDocument.value(of: bytes, limits: Self.limits),
            let format = Self.number(value, "format")
        else { throw .malformed }
        guard format == Self.format else { throw .otherFormat }
        guard let time = Self.number(value, "time"), let started = Self.number(value, "started")
        else { throw .malformed }
        self.init()
        (self.time, self.started) = (time, started)
        version = Self.text(value, "version") ?? ""
        generation = Self.number(value, "generation") ?? 0
        if let policy = value["policy"] { self.policy = Policy(policy) }
        if let cache = value["cache"] { self.cache = Cache(cache) }
        if let hosts = value["hosts"] { self.hosts = Reachability(hosts) }
        pinsets = Self.list(value, "pinsets", most: Self.maximumPinsets).compactMap(Pinset.init)
        hasAllPinsets = value["allPinsets"] == .boolean(true)
    }

    fileprivate static func number(_ value: DocumentValue, _ key: String) -> Int64? {
        guard case .number(let number)? = value[key], let integer = number.integer,
            0...greatest ~= integer
        else { return nil }
        return integer
    }

    fileprivate static func count(_ value: DocumentValue, _ key: String) -> Int {
        Int(number(value, key) ?? 0)
    }

    fileprivate static func text(_ value: DocumentValue, _ key: String) -> String? {
        guard case .string(let text)? = value[key] else { return nil }
        return FleetText.shown(text)
    }

    fileprivate static func hash(_ value: DocumentValue) -> String {
        text(value, "hash").flatMap { PolicyEnvelope.isHash($0) ? $0 : nil } ?? ""
    }

    fileprivate static func list(
        _ value: DocumentValue, _ key: String, most: Int
    ) -> [DocumentValue] {
        guard case .array(let values)? = value[key] else { return [] }
        return Array(values.prefix(most))
    }

    fileprivate static func texts(_ value: DocumentValue, _ key: String) -> [String] {
        list(value, key, most: 16).compactMap {
            if case .string(let text) = $0 { FleetText.shown(text) } else { nil }
        }
    }
}

extension FleetReport.Policy {
    fileprivate init(_ value: DocumentValue) {
        serial = FleetReport.number(value, "serial")
        hash = FleetReport.hash(value)
        expires = FleetReport.number(value, "expires")
        alarms = FleetReport.texts(value, "alarms")
        if let offered = value["offered"], let serial = FleetReport.number(offered, "serial") {
            self.offered = FleetReport.Offer(
                serial: serial, hash: FleetReport.hash(offered),
                percent: min(100, FleetReport.count(offered, "percent")),
                refusal: FleetReport.text(offered, "refusal"))
        }
    }
}

extension FleetReport.Cache {
    fileprivate init(_ value: DocumentValue) {
        memoryHits = FleetReport.number(value, "memoryHits") ?? 0
        diskHits = FleetReport.number(value, "diskHits") ?? 0
        sharedHits = FleetReport.number(value, "sharedHits") ?? 0
        lookups = FleetReport.number(value, "lookups") ?? 0
    }
}

extension FleetReport.Reachability {
    fileprivate init(_ value: DocumentValue) {
        entries = FleetReport.count(value, "entries")
        reachable = FleetReport.count(value, "reachable")
        notReachable = FleetReport.count(value, "notReachable")
        unknown = FleetReport.count(value, "unknown")
        worst = FleetReport.list(value, "worst", most: FleetReport.maximumHosts).compactMap {
            host in
            guard let name = FleetReport.text(host, "name") else { return nil }
            return FleetReport.Host(
                name: name, reachable: FleetReport.count(host, "reachable"),
                notReachable: FleetReport.count(host, "notReachable"),
                unknown: FleetReport.count(host, "unknown"),
                requests: FleetReport.number(host, "requests") ?? 0,
                failures: FleetReport.number(host, "failures") ?? 0,
                troubles: FleetReport.texts(host, "troubles"))
        }
    }
}

extension FleetReport.Pinset {
    fileprivate init?(_ value: DocumentValue) {
        guard let name = FleetReport.text(value, "name") else { return nil }
        self.name = name
        evaluated = FleetReport.number(value, "evaluated")
        // What does not say that it is complete is not.
        isComplete = value["complete"] == .boolean(true)
        idle = FleetReport.list(value, "idle", most: FleetReport.maximumPins).compactMap { pin in
            guard let text = FleetReport.text(pin, "pin"),
                let since = FleetReport.number(pin, "since")
            else { return nil }
            return FleetReport.Pin(
                text: text, since: since, matched: FleetReport.number(pin, "matched"))
        }
    }
}
