import CImages

/// The restrictions that a decoding process has placed on itself.
package struct Confinement: Sendable, Equatable {
    /// System calls other than the few needed for decoding end the process (seccomp).
    package var filtersCalls: Bool
    /// Its memory is limited.
    package var boundsMemory: Bool

    package init(filtersCalls: Bool, boundsMemory: Bool) {
        self.filtersCalls = filtersCalls
        self.boundsMemory = boundsMemory
    }

    /// Confines the calling process permanently. It must have a single thread, and its socket as
    /// descriptors 0 and 1: all other descriptors are closed, and it can no longer open any, write
    /// to a file, start a process or gain a privilege. Returns `nil` if that is not possible.
    ///
    /// - Parameters:
    ///   - memory: how many bytes it may allocate beyond what it already has.
    ///   - seconds: processor time after which it is ended.
    package static func ofThisProcess(memory: UInt64, seconds: UInt32) -> Confinement? {
        let result = image_confine(memory, seconds)
        guard result >= 0 else { return nil }
        return Confinement(
            filtersCalls: result & Int32(IMAGE_CONFINED_CALLS) != 0,
            boundsMemory: result & Int32(IMAGE_CONFINED_MEMORY) != 0)
    }

    /// Ends the process after this many seconds of wall-clock time; 0 cancels that.
    package static func setAlarm(seconds: UInt32) { image_set_alarm(seconds) }
}
