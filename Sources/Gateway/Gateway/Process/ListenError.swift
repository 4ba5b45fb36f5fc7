import EventLoop
import HTTPCore

/// Why a listening socket could not be opened.
package struct ListenError: Error, CustomStringConvertible {
    /// What the system, or the file system, says.
    package enum Cause: Equatable, CustomStringConvertible {
        case network(Errno)
        case unix(UnixSocketError)

        package var description: String {
            switch self {
            case .network(let error): "\(error)"
            case .unix(let error): "\(error)"
            }
        }
    }

    package let listener: String
    package let address: ListenAddress
    package let cause: Cause

    /// The system's error number, if that is the cause.
    package var code: Int32? {
        switch cause {
        case .network(let error), .unix(.failed(let error)), .unix(.folder(let error)): error.code
        case .unix: nil
        }
    }

    package var description: String {
        "cannot listen on \(address) for listener \(listener): \(cause)"
    }
}
