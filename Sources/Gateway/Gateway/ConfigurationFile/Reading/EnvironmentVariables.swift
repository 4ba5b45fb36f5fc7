import CLinux

/// Environment variables.
package enum EnvironmentVariables: Sendable, Equatable {
    /// Those of this process, as they are when they are asked for.
    case ofProcess
    /// These, with their values.
    case fixed([String: String])

    /// The bytes of a variable's value; nil: it is not set.
    subscript(name: String) -> [UInt8]? {
        switch self {
        case .ofProcess: getenv(name).map { Array(String(cString: $0).utf8) }
        case .fixed(let values): values[name].map { Array($0.utf8) }
        }
    }
}
