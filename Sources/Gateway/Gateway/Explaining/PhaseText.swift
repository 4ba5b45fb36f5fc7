import PinfoldMetrics

/// Formats what time was spent on, with the names of the access log.
package enum PhaseText {
    /// Each phase that happened, as in "dns 1.5 ms".
    package static func parts(of phases: PhaseTimes) -> [String] {
        Phase.allCases.compactMap { phase in
            phases[phase].map { "\(name(of: phase)) \(milliseconds(Int64(clamping: $0)))" }
        }
    }

    private static func name(of phase: Phase) -> String {
        "\(phase.label)".split(separator: "_").joined(separator: " ")
    }

    /// Microseconds in milliseconds, with one decimal.
    package static func milliseconds(_ microseconds: Int64) -> String {
        let tenths = microseconds / 100
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
