import Documents
import SharedCacheLevel

// A report as JSON.
extension FleetReport {
    /// The report as JSON, of at most ``FleetMember/maximumReportBytes``: if it would be longer,
    /// with fewer hosts and pins.
    func encoded(maximumBytes: Int = FleetMember.maximumReportBytes) -> [UInt8] {
        var report = self
        while true {
            let bytes = Array(report.json.description.utf8)
            if bytes.count <= maximumBytes { return bytes }
            guard report.halve() else { return [] }
        }
    }

    /// Leaves out the better half of what is listed; returns `false` if nothing is.
    private mutating func halve() -> Bool {
        guard !hosts.worst.isEmpty || !pinsets.isEmpty else { return false }
        hosts.worst.removeLast((hosts.worst.count + 1) / 2)
        pinsets.removeLast((pinsets.count + 1) / 2)
        hasAllPinsets = false
        return true
    }

    private var json: DocumentValue {
        var object: DocumentDictionary = [
            "format": .number(DocumentNumber(Self.format)),
            "version": .string(FleetText.shown(version)),
            "started": Self.number(started), "time": Self.number(time),
            "generation": Self.number(generation),
            "cache": .dictionary([
                "memoryHits": Self.number(cache.memoryHits),
                "diskHits": Self.number(cache.diskHits),
                "sharedHits": Self.number(cache.sharedHits),
                "lookups": Self.number(cache.lookups),
            ]),
            "hosts": .dictionary([
                "entries": Self.number(hosts.entries), "reachable": Self.number(hosts.reachable),
                "notReachable": Self.number(hosts.notReachable),
                "unknown": Self.number(hosts.unknown),
                "worst": .array(hosts.worst.map(Self.json)),
            ]),
            "pinsets": .array(pinsets.map(Self.json)), "allPinsets": .boolean(hasAllPinsets),
        ]
        if let policy { object["policy"] = Self.json(policy) }
        return .dictionary(object)
    }

    private static func number(_ value: some BinaryInteger) -> DocumentValue {
        .number(DocumentNumber(value))
    }

    private static func texts(_ texts: [String]) -> DocumentValue {
        .array(texts.map { .string(FleetText.shown($0)) })
    }

    private static func json(_ policy: Policy) -> DocumentValue {
        var object: DocumentDictionary = ["alarms": texts(policy.alarms)]
        if let serial = policy.serial {
            object["serial"] = number(serial)
            object["hash"] = .string(policy.hash)
        }
        if let expires = policy.expires { object["expires"] = number(expires) }
        if let offered = policy.offered {
            var offer: DocumentDictionary = [
                "serial": number(offered.serial), "hash": .string(offered.hash),
                "percent": number(offered.percent),
            ]
            if let refusal = offered.refusal {
                offer["refusal"] = .string(FleetText.shown(refusal))
            }
            object["offered"] = .dictionary(offer)
        }
        return .dictionary(object)
    }

    private static func json(_ host: Host) -> DocumentValue {
        .dictionary([
            "name": .string(FleetText.shown(host.name)), "reachable": number(host.reachable),
            "notReachable": number(host.notReachable), "unknown": number(host.unknown),
            "requests": number(host.requests), "failures": number(host.failures),
            "troubles": texts(host.troubles),
        ])
    }

    private static func json(_ pinset: Pinset) -> DocumentValue {
        var object: DocumentDictionary = [
            "name": .string(FleetText.shown(pinset.name)),
            "complete": .boolean(pinset.isComplete),
            "idle": .array(
                pinset.idle.map { pin in
                    var object: DocumentDictionary = [
                        "pin": .string(FleetText.shown(pin.text)), "since": number(pin.since),
                    ]
                    if let matched = pin.matched { object["matched"] = number(matched) }
                    return .dictionary(object)
                }),
        ]
        if let evaluated = pinset.evaluated { object["evaluated"] = number(evaluated) }
        return .dictionary(object)
    }
}
