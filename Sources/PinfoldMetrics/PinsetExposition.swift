extension ExpositionWriter {
    /// What pinsets found about servers, and how long they last.
    mutating func writePinsets(_ snapshot: MetricsSnapshot) {
        writeEvaluations(snapshot)
        writeMatches(snapshot)
        // Pinsets beyond the capacity of the labels have no series of their own.
        let labels = Set(snapshot.pinsets.labels)
        let pinsets = snapshot.service.pinsets.filter { labels.contains($0.label) }
        let now = snapshot.service.wallSeconds
        family(
            "pinfold_pinset_enforced", .gauge,
            help: "1 while a server that no pin matches is refused, 0 while that is only reported.")
        for pinset in pinsets {
            let reports = pinset.isReportedAfter && pinset.expires.map { now >= $0 } ?? false
            sample(LabelText("pinset", pinset.label), pinset.isEnforced && !reports ? 1 : 0)
        }
        family(
            "pinfold_pinset_expiry_seconds", .gauge,
            help: "Time left until a pinset expires; below zero since it has.", unit: "seconds")
        for pinset in pinsets {
            guard let expires = pinset.expires else { continue }
            sample(LabelText("pinset", pinset.label), signed: expires - now)
        }
    }

    private mutating func writeMatches(_ snapshot: MetricsSnapshot) {
        family(
            "pinfold_pin_matches", .counter,
            help: "Judgements in which a server's chain had a pin, by pinset and the pin's index.")
        let table = snapshot.pinsets
        for pinset in Array(table.labels.indices) + [table.overflowIndex] {
            let known = snapshot.service.pinsets.first { $0.label == table[pinset] }?.pins ?? 0
            for pin in 0..<PlainLayout.pins {
                let total = snapshot.workers.reduce(UInt64(0)) { sum, worker in
                    pinset < worker.dimensions.pinsets
                        ? sum &+ worker.pinMatches(pinset: pinset, pin: pin) : sum
                }
                // Configured pins are listed from the start: a backup that never matches is at 0.
                guard total > 0 || pin < known else { continue }
                var labels = LabelText("pinset", table[pinset])
                labels.append("pin", pin < PlainLayout.pins - 1 ? "\(pin)" : "other")
                sample(labels, total)
            }
        }
    }

    private mutating func writeEvaluations(_ snapshot: MetricsSnapshot) {
        family(
            "pinfold_pin_evaluations", .counter,
            help: "Judgements of servers by pinsets, by pinset and result.")
        let table = snapshot.pinsets
        for pinset in Array(table.labels.indices) + [table.overflowIndex] {
            for result in PinResult.allCases {
                let total = snapshot.workers.reduce(UInt64(0)) { sum, worker in
                    pinset < worker.dimensions.pinsets
                        ? sum &+ worker.pinEvaluations(pinset: pinset, result: result) : sum
                }
                // Configured pinsets are listed from the start, so that the first mismatch is a
                // change.
                guard total > 0 || pinset != table.overflowIndex else { continue }
                var labels = LabelText("pinset", table[pinset])
                labels.append("result", result.label)
                sample(labels, total)
            }
        }
    }
}
