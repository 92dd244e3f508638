import { useParams } from '@tanstack/react-router';

/** Id of the application whose page is shown. */
export const useApplicationId = () => useParams({ from: '/signed-in/applications/$applicationId' }).applicationId;
