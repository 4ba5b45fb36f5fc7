import ArgumentParser

/// `pinfold pin`: shows, proposes, imports and exports pins.
struct Pins: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Show, propose, import and export pins.",
        subcommands: [
            PinShow.self, PinObserved.self, PinPropose.self, PinStatus.self, PinImport.self,
            PinExportCommand.self,
        ],
        defaultSubcommand: PinShow.self)
}
