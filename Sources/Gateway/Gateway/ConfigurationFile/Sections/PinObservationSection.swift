import HTTPCore
import PinfoldConfiguration

/// `pins`.
extension PinObservationConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .choice("observe", \.scope),
            ConfigurationKey(
                "reportTo", \.reportTo, byDefault: "none",
                reading: { .some($0.reportDestination($1)) },
                text: { $0.map { YAMLText.quoted("\($0)") } }),
        ])
    }
}

extension SnapshotReader {
    /// Reads `pins`: of which servers the keys are remembered.
    func pinObservation(_ field: Field?) -> PinObservationConfiguration {
        let (observation, section) = read(
            field, by: PinObservationConfiguration.table, over: PinObservationConfiguration())
        warnOfClearText(observation.reportTo, section?["reportTo"])
        return observation
    }
}
