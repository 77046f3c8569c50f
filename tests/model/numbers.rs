//! Numbers of which only the order counts: uids and versions are counted anew after each step, so that states that differ in nothing else are
//! one, and the space is finite however often something is written.

use super::line::{Line, Wrote};
use super::objects::{Projected, Tenant};
use super::state::{Answer, Name, Request};

/// A family of numbers that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    TenantUids,
    TenantVersions,
    ProjectionUids,
    ProjectionVersions,
}

impl Numbers {
    const ALL: [Self; 4] = [Self::TenantUids, Self::TenantVersions, Self::ProjectionUids, Self::ProjectionVersions];

    /// Those of a write to the tenant object, or to the projection.
    fn of_a_write(self, to_the_projection: bool) -> Option<bool> {
        match self {
            Self::TenantUids | Self::ProjectionUids if (self == Self::ProjectionUids) == to_the_projection => Some(true),
            Self::TenantVersions | Self::ProjectionVersions if (self == Self::ProjectionVersions) == to_the_projection => Some(false),
            _ => None,
        }
    }
}

/// What holds such numbers.
trait Numbered {
    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8));
}

impl<T: Numbered> Numbered for Option<T> {
    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8)) {
        if let Some(held) = self {
            held.visit(which, see);
        }
    }
}

impl Numbered for Tenant {
    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8)) {
        match which {
            Numbers::TenantUids => see(&mut self.uid),
            Numbers::TenantVersions => see(&mut self.version),
            Numbers::ProjectionUids | Numbers::ProjectionVersions => {}
        }
    }
}

impl Numbered for Projected {
    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8)) {
        match which {
            Numbers::TenantUids => see(&mut self.owner),
            Numbers::ProjectionUids => see(&mut self.uid),
            Numbers::ProjectionVersions => see(&mut self.version),
            Numbers::TenantVersions => {}
        }
    }
}

impl Numbered for Request {
    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8)) {
        match self {
            Self::Put(tenant) => tenant.visit(which, see),
            Self::Create(projected) | Self::Replace(projected) => projected.visit(which, see),
            Self::Delete(uid) if which == Numbers::ProjectionUids => see(uid),
            Self::Status { uid, .. } if which == Numbers::TenantUids => see(uid),
            Self::Status { version, .. } if which == Numbers::TenantVersions => see(version),
            Self::GetTenant | Self::GetProjection | Self::Delete(_) | Self::Status { .. } => {}
        }
    }
}

impl Numbered for Answer {
    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8)) {
        match self {
            Self::Tenant(tenant) => tenant.visit(which, see),
            Self::Projection(projected) => projected.visit(which, see),
            Self::Gone | Self::NotFound | Self::Refused => {}
        }
    }
}

fn visit_write(wrote: &mut Option<Wrote>, to_the_projection: bool, which: Numbers, see: &mut impl FnMut(&mut u8)) {
    match (which.of_a_write(to_the_projection), wrote) {
        (Some(true), Some(Wrote { uid, .. })) => see(uid),
        (Some(false), Some(Wrote { version: Some(version), .. })) => see(version),
        _ => {}
    }
}

fn visit_line<T: Numbered>(line: &mut Line<T>, is_the_projection: bool, which: Numbers, see: &mut impl FnMut(&mut u8)) {
    line.server.visit(which, see);
    line.cached.visit(which, see);
    line.news.iter_mut().for_each(|shown| shown.visit(which, see));
    visit_write(&mut line.debt, is_the_projection, which, see);
}

impl Name {
    /// A number above all that anybody knows.
    pub(crate) fn next(&mut self, which: Numbers) -> u8 {
        let mut last = 0;
        self.visit(which, &mut |number| last = last.max(*number));
        last + 1
    }

    /// Counts anew from 1, in the same order. Zero stands for what the server has yet to give.
    pub(crate) fn renumber(&mut self) {
        for which in Numbers::ALL {
            let mut used = 1_u64;
            self.visit(which, &mut |number| used |= 1 << *number);
            if (used & (used + 1)) != 0 {
                self.visit(which, &mut |number| *number = (used & ((1 << *number) - 1)).count_ones().to_le_bytes()[0]);
            }
        }
    }

    fn visit(&mut self, which: Numbers, see: &mut impl FnMut(&mut u8)) {
        visit_line(&mut self.tenant, false, which, see);
        visit_line(&mut self.projection, true, which, see);
        for call in self.works.iter_mut().filter_map(|work| work.call.as_mut()) {
            call.tenant.visit(which, see);
            call.act.visit(which, see);
            call.answer.visit(which, see);
            for (at, wrote) in call.wrote.iter_mut().enumerate() {
                visit_write(wrote, at == 1, which, see);
            }
        }
        self.late.visit(which, see);
        if let Some((uid, _)) = self.stripped.as_mut().filter(|_| which == Numbers::TenantUids) {
            see(uid);
        }
    }
}
