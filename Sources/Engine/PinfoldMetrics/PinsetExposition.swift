extension ExpositionWriter {
    /// The verdicts of pinsets, and their expiry.
    mutating func writePinsets(_ snapshot: MetricsSnapshot) {
        writeEvaluations(snapshot)
        writeMatches(snapshot)
        let pinsets = snapshot.service.pinsets
        let now = snapshot.service.wallSeconds
        family(
            "pinfold_pinset_enforced", .gauge,
            help: "1 if a server that no pin matches is refused, 0 if that is only reported.")
        for pinset in pinsets {
            let reports = pinset.isReportedAfter && pinset.expires.map { now >= $0 } ?? false
            sample(LabelText("pinset", pinset.label), pinset.isEnforced && !reports ? 1 : 0)
        }
        family(
            "pinfold_pinset_expiry_timestamp_seconds", .gauge, help: "When a pinset expires.",
            unit: "seconds")
        for pinset in pinsets {
            guard let expires = pinset.expires else { continue }
            sample(LabelText("pinset", pinset.label), signed: expires)
        }
    }

    private mutating func writeMatches(_ snapshot: MetricsSnapshot) {
        family(
            "pinfold_pin_matches", .counter,
            help: "Evaluations of servers whose chain contained a pin, by pinset and pin prefix.")
        for pinset in snapshot.service.pinsets {
            // Configured pins are listed from the start: a backup that never matches is at 0.
            for pin in pinset.pins {
                var labels = LabelText("pinset", pinset.label)
                labels.append("pin", pin.label)
                sample(labels, pin.matches)
            }
        }
    }

    private mutating func writeEvaluations(_ snapshot: MetricsSnapshot) {
        family(
            "pinfold_pin_evaluations", .counter,
            help: "Evaluations of servers by pinsets, by pinset and result.")
        for pinset in snapshot.pinsets.inForceAndOther {
            for result in PinResult.allCases {
                let total = snapshot.workers.reduce(UInt64(0)) {
                    $0 &+ $1.pinEvaluations(pinset: pinset.index, result: result)
                }
                // Configured pinsets are listed from the start, so that the first mismatch is a
                // change.
                guard total > 0 || pinset.index != .other else { continue }
                begin(LabelText("pinset", pinset.label))
                label("result", result.label)
                end(total)
            }
        }
    }
}
