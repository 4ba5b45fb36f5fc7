import CImages

/// What a process that decodes images has taken from itself.
package struct Confinement: Sendable, Equatable {
    /// System calls but the few that decoding needs end the process (seccomp).
    package var filtersCalls: Bool
    /// Its memory is bounded.
    package var boundsMemory: Bool

    package init(filtersCalls: Bool, boundsMemory: Bool) {
        self.filtersCalls = filtersCalls
        self.boundsMemory = boundsMemory
    }

    /// Confines the calling process for good, which must have one thread and its socket as 0 and 1:
    /// all other descriptors are closed, none can be opened, nothing written to a file, no process
    /// started, no privilege gained. nil: that could not be done.
    ///
    /// - Parameters:
    ///   - memory: bytes that it may take beyond what it has.
    ///   - seconds: processor time, after which it is ended.
    package static func ofThisProcess(memory: UInt64, seconds: UInt32) -> Confinement? {
        let result = image_confine(memory, seconds)
        guard result >= 0 else { return nil }
        return Confinement(
            filtersCalls: result & Int32(IMAGE_CONFINED_CALLS) != 0,
            boundsMemory: result & Int32(IMAGE_CONFINED_MEMORY) != 0)
    }

    /// Ends the process after so many seconds by the clock; 0 takes that back.
    package static func setAlarm(seconds: UInt32) { image_set_alarm(seconds) }
}
