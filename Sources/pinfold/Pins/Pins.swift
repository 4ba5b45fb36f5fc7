import ArgumentParser

/// `pinfold pin`: what to pin.
struct Pins: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Show the pins of servers and files.",
        subcommands: [PinShow.self],
        defaultSubcommand: PinShow.self)
}
