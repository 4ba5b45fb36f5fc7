import ArgumentParser
import Configuration

/// Where the command line hands over to the gateway.
enum GatewayProcess {
    /// Reads and checks the configuration again, with the same options.
    typealias Reload = () throws(ConfigurationErrors) -> ConfigurationSnapshot

    /// Runs the gateway until it is told to stop.
    static func run(configuration: ConfigurationSnapshot, reload: Reload) throws {
        writeToStandardError("pinfold: this build contains no gateway\n")
        throw ExitCode(70)
    }
}
