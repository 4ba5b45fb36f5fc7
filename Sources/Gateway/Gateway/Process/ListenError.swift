import CLinux
import EventLoop
import HTTPCore

/// Why a listening socket could not be opened.
package struct ListenError: Error, CustomStringConvertible {
    /// What the system, or the file system, says.
    package enum Cause: Equatable, CustomStringConvertible {
        case network(Errno)
        case unix(UnixSocketError)
        /// It cannot accept connections to addresses that are not this host's.
        case transparency(Errno)

        package var description: String {
            switch self {
            case .network(let error): "\(error)"
            case .unix(let error): "\(error)"
            case .transparency(let error) where error.code == EPERM:
                "transparent: tproxy needs the capability CAP_NET_ADMIN, or a socket from the "
                    + "service manager with Transparent=yes"
            case .transparency(let error): "transparent: tproxy: \(error)"
            }
        }
    }

    package let listener: String
    package let address: ListenAddress
    package let cause: Cause

    /// The system's error number, if that is the cause.
    package var code: Int32? {
        switch cause {
        case .network(let error), .transparency(let error), .unix(.failed(let error)),
            .unix(.folder(let error)), .unix(.owner(let error)):
            error.code
        case .unix: nil
        }
    }

    package var description: String {
        "cannot listen on \(address) for listener \(listener): \(cause)"
    }
}
