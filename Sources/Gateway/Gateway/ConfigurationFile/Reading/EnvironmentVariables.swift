import CLinux

/// Environment variables.
package enum EnvironmentVariables: Sendable, Equatable {
    /// The variables of this process, with their current values.
    case ofProcess
    /// A fixed set of variables and values.
    case fixed([String: String])

    /// The bytes of a variable's value, or `nil` if it is not set.
    subscript(name: String) -> [UInt8]? {
        switch self {
        case .ofProcess:
            getenv(name).map { value in
                UnsafeRawBufferPointer(start: value, count: strlen(value)).map { $0 }
            }
        case .fixed(let values): values[name].map { Array($0.utf8) }
        }
    }
}
